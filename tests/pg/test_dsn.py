"""Where a database is: URLs and pairs as libpq reads them, service files, password files, several hosts."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest
from citius import pg
from citius.errors import ConfigError
from citius.pg.dsn import parse, parse_all
from pg_rig import Server, pooled


def places(dsn: str, environ: dict[str, str] | None = None) -> list[tuple[str, int]]:
    return [
        (target.host, target.port) for target in parse_all(f"{dsn}", environ or {"PGUSER": "u"})
    ]


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://u@a,b:5433,c/db", [("a", 5432), ("b", 5433), ("c", 5432)]),
        ("host=a,b port=1,2 user=u", [("a", 1), ("b", 2)]),
        ("host=a,b port=7 user=u", [("a", 7), ("b", 7)]),
        ("host=a,b port=,9 user=u", [("a", 5432), ("b", 9)]),
        ("postgresql://u@[::1]:5433/db", [("::1", 5433)]),
        ("postgresql://u@[::1],127.0.0.1/db", [("::1", 5432), ("127.0.0.1", 5432)]),
        ("postgresql://u@%2Fvar%2Frun:5433/db", [("/var/run", 5433)]),
        ("postgresql:///db?host=/var/run&user=u", [("/var/run", 5432)]),
        ("postgresql://", [("localhost", 5432)]),
        ("hostaddr=10.0.0.1", [("10.0.0.1", 5432)]),
    ],
)
def test_hosts(dsn: str, expected: list[tuple[str, int]]) -> None:
    assert places(dsn) == expected


@pytest.mark.parametrize(
    ("dsn", "why"),
    [
        ("host=a,b port=1,2,3", "3 ports"),
        ("host=a,b hostaddr=1.1.1.1", "hostaddr"),
        ("port=x", "a port is a number"),
        ("port=70000", "a port is a number"),
        ("connect_timeout=soon", "float"),
        ("target_session_attrs=fast", "target_session_attrs is one of"),
        ("load_balance_hosts=yes", "load_balance_hosts is one of"),
        ("require_auth=scram-sha-256", "not supported"),
        ("gssencmode=require", "not supported"),
        ("postgresql://u@h/d?ssl=require", "sslmode=require"),
        ("postgresql://u@h/d?ssl=verify-full", "sslmode=require"),
        ("ssl=1", "sslmode=require"),
        ("service=nowhere", "no service file"),
        ("password='x", "not closed"),
        ("password = x y", "key=value"),
    ],
)
def test_what_cannot_be_read(dsn: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse_all(dsn, {"PGUSER": "u"})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PGREQUIREAUTH", "scram-sha-256"),
        ("PGREQUIREPEER", "postgres"),
        ("PGREQUIRESSL", "1"),
        ("PGSSLMAXPROTOCOLVERSION", "TLSv1.2"),
        ("PGSSLCERTMODE", "require"),
        ("PGSSLCRL", "/x"),
        ("PGSSLCRLDIR", "/x"),
        ("PGGSSENCMODE", "require"),
    ],
)
def test_what_a_variable_requires_is_not_ignored(variable: str, value: str) -> None:
    """libpq's variables ask for the same as the words of a DSN, and it would be less safe without."""
    with pytest.raises(ConfigError, match="not supported"):
        parse_all("user=u", {variable: value})
    assert parse_all("user=u", {variable: ""})


def test_urls_that_ask_for_tls_as_libpq_has_it() -> None:
    assert parse_all("postgresql://u@h/d?ssl=true", {})[0].tls.mode == "require"
    (target,) = parse_all("postgresql://u@h/d?ssl=true&sslmode=verify-full&sslrootcert=/x", {})
    assert target.tls.mode == "verify-full"
    assert parse_all("user=u", {"PGGSSENCMODE": "prefer"})


def test_pairs_with_quotes_and_spaces() -> None:
    target = parse(r"user = u password='it\'s \\ x' dbname=a\ b application_name=''", {})
    assert (target.user, target.password, target.database) == ("u", "it's \\ x", "a b")
    assert target.parameters == (("application_name", ""),)
    assert parse("user=u hostaddr=10.0.0.1 host=db", {}).address == ("10.0.0.1", 5432)
    assert parse("user=u host=@abstract", {}).address == "\0abstract/.s.PGSQL.5432"
    assert parse("user=u gssencmode=disable keepalives=1", {}).parameters == ()


def test_a_service(tmp_path: Path) -> None:
    own = tmp_path / ".pg_service.conf"
    own.write_text(
        "# ours\n[other]\nhost=other\n\n[shop]\nhost=db\nport=5433\nuser=app\ndbname=shop\n"
    )
    environ = {"HOME": str(tmp_path), "PGHOST": "elsewhere", "PGPORT": "1"}
    target = parse("service=shop dbname=test", environ)
    # What is given comes before the service, the service before the variables.
    assert (target.host, target.port, target.user) == ("db", 5433, "app")
    assert target.database == "test"
    assert parse("user=u", environ | {"PGSERVICE": "other"}).host == "other"
    assert parse("postgresql:///?service=shop", environ).host == "db"
    elsewhere = tmp_path / "services"
    elsewhere.write_text("[shop]\nhost=third\n")
    assert parse("service=shop user=u", environ | {"PGSERVICEFILE": str(elsewhere)}).host == "third"


def test_passwords_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / ".pgpass"
    path.write_text(
        "# host:port:database:user:password\n"
        "a:5432:db:u:first\n"
        "a:*:*:u:second\n"
        r"b\:c:5432:db:u:with\:colon:and\\more" + "\n"
        "*:*:*:*:last\n"
    )
    path.chmod(0o600)
    environ = {"HOME": str(tmp_path)}

    def password(dsn: str) -> str | None:
        return parse(dsn, environ).password

    assert password("host=a dbname=db user=u") == "first"
    assert password("host=a port=5433 dbname=db user=u") == "second"
    assert password("host=b:c dbname=db user=u") == "with:colon:and\\more"
    assert password("host=z user=v") == "last"
    assert password("host=a user=u password=given") == "given"
    assert [target.password for target in parse_all("host=a,z dbname=db user=u", environ)] == [
        "first",
        "last",
    ]
    path.chmod(0o644)
    assert password("host=a dbname=db user=u") is None
    assert parse(f"host=a user=u passfile={tmp_path}/none", environ).password is None


@pooled(size=1)
async def test_the_next_host_is_tried(pool) -> None:
    own = pool.targets[0]
    with socket.socket() as closed:
        # Bound and not listening: it refuses.
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        dsn = f"host=/nonexistent,127.0.0.1,{own.host} port={own.port},{port},{own.port} user={own.user}"
        async with pg.Pool(f"{dsn} dbname=postgres", size=2) as second:
            assert await second.fetch_value("SELECT 1") == 1
        with pytest.raises(pg.SessionLost, match="No such file.*Connect call failed"):
            await pg.Pool(f"host=/nonexistent,127.0.0.1 port=1,{port} user=u", size=1).open()


def test_the_host_that_is_wanted(server, own_server) -> None:
    """One accepts writes, the other does not."""

    async def place(attributes: str) -> str:
        hosts = f"host={own_server.directory},{server.directory} port=5432,5432"
        async with pg.Pool(
            f"{hosts} user=tester dbname=postgres target_session_attrs={attributes}", size=1
        ) as pool:
            return await pool.fetch_value("SHOW default_transaction_read_only")

    own_server.stop()
    own_server.start(default_transaction_read_only="on")
    assert asyncio.run(place("any")) == "on"
    assert asyncio.run(place("read-only")) == "on"
    assert asyncio.run(place("read-write")) == "off"
    assert asyncio.run(place("primary")) == "on"
    # There is no standby: it is preferred, or missed.
    assert asyncio.run(place("prefer-standby")) == "on"
    with pytest.raises(pg.SessionLost, match="target_session_attrs=standby"):
        asyncio.run(place("standby"))


def test_options_of_the_socket(own_server) -> None:
    """They are those of the connection; a system's own where the DSN says none."""
    own_server.stop()
    own_server.listen()
    own_server.trust("host all all 127.0.0.1/32 trust")
    own_server.start()
    base = f"host=127.0.0.1 port={own_server.port} user=tester dbname=postgres sslmode=disable"

    async def of(dsn: str) -> list[int]:
        async with pg.Pool(dsn, size=1) as pool:
            [session] = pool._sessions
            made, level = session._socket, socket.IPPROTO_TCP
            assert made is not None
            return [
                made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE),
                made.getsockopt(level, socket.TCP_KEEPIDLE),
                made.getsockopt(level, socket.TCP_KEEPINTVL),
                made.getsockopt(level, socket.TCP_KEEPCNT),
                made.getsockopt(level, socket.TCP_USER_TIMEOUT),
            ]

    given = "keepalives_idle=11 keepalives_interval=3 keepalives_count=4 tcp_user_timeout=5000"
    assert asyncio.run(of(f"{base} {given}")) == [1, 11, 3, 4, 5000]
    plain = asyncio.run(of(base))
    assert (plain[0], plain[4]) == (1, 0)
    assert asyncio.run(of(f"{base} keepalives=0 keepalives_idle=0")) == [0, *plain[1:]]
    with pytest.raises(ConfigError, match="tcp_user_timeout is a number, got 'soon'"):
        parse("tcp_user_timeout=soon", {})


def test_plus_is_no_space() -> None:
    """databases D19: the query of a URL is as libpq reads it."""
    target = parse("postgresql://u@h/db?application_name=a+b%20c&password=x+y", {})
    assert target.parameters == (("application_name", "a+b c"),)
    assert target.password == "x+y"


def test_the_default_socket_is_localhost_in_a_password_file(tmp_path: Path) -> None:
    """databases D19."""
    passwords = tmp_path / "pgpass"
    passwords.write_text("localhost:*:*:*:local\n")
    passwords.chmod(0o600)
    found = parse(f"host=/var/run/postgresql user=u passfile={passwords}", {}).password
    assert found == "local"
    assert parse(f"host=/somewhere user=u passfile={passwords}", {}).password is None


def _resolve(loop: asyncio.AbstractEventLoop, addresses: list[str]) -> None:
    """Have the name `db.example` lead to these addresses, in their order."""
    resolve = loop.getaddrinfo

    async def getaddrinfo(host: str, port: int, **options: object) -> object:
        if host == "db.example":
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses]
        return await resolve(host, port, **options)  # pyright: ignore[reportArgumentType]

    loop.getaddrinfo = getaddrinfo  # pyright: ignore[reportAttributeAccessIssue]


def test_each_address_of_a_name_has_its_own_time(binaries: Path) -> None:
    """databases D12, D13: the second address is tried, and a cancel request goes to it."""
    server = Server(binaries)
    server.listen()
    server.trust("host all all 127.0.0.1/32 trust")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        addresses = ["127.0.0.9", "127.0.0.1"]
        _resolve(loop, addresses)
        dsn = f"host=db.example port={server.port} user={server.user} dbname=postgres connect_timeout=1"
        # It takes connections and says nothing.
        silent = socket.create_server(("127.0.0.9", server.port))
        with silent:
            async with pg.Pool(dsn, size=1) as pool:
                assert await pool.fetch_value("SELECT 1") == 1
                waiting = asyncio.ensure_future(pool.fetch("SELECT pg_sleep(60)"))
                await asyncio.sleep(0)
                waiting.cancel()
                # It is cancelled on the server that executes it, not on the first of the name.
                async with asyncio.timeout(10):
                    assert await pool.fetch_value("SELECT 2") == 2

    try:
        server.start()
        asyncio.run(main())
    finally:
        server.remove()
