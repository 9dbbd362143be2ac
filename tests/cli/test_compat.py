"""Command lines of other servers: every flag is known, and nothing is dropped silently."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from citius.cli import cli
from citius.errors import ConfigError
from citius.settings import compat, gunicorn
from citius.settings.config import OPTIONS
from citius.settings.loading import load
from rig import citius

NO_LIMIT = (1 << 31) - 1


def parse(*arguments: str) -> dict[str, object]:
    """What click makes of a command line, the callback left out."""
    command = cli.get_command(click.Context(cli), "serve")
    assert command is not None
    return command.make_context("serve", ["x:app", *arguments]).params


EVERY = sorted({(flag, server) for server, flags in compat.FLAGS.items() for flag in flags.split()})


@pytest.mark.parametrize(("flag", "server"), EVERY)
def test_every_flag_is_an_option_or_answered(flag: str, server: str, capsys) -> None:
    known = compat.accepted()
    if flag in known:
        option = next((o for o in OPTIONS.values() if known[flag] in o.flags), None)
        if option is None or option.kind == "bool":
            return
        value = {"int": "1", "float": "1", "list": "x"}.get(option.kind, "x")
        if option.choices:
            value = option.choices[0]
        assert parse(flag, value)[option.name] is not None
        return
    answer = compat.REPLIES[flag]
    arguments = (flag, "x") if answer.takes_value else (flag,)
    if not answer.goes_on or flag == "--worker-class":
        with pytest.raises(click.UsageError, match=flag):
            parse(*arguments)
    else:
        parse(*arguments)
        assert answer.says in capsys.readouterr().err


def test_no_answer_is_for_a_flag_nobody_has() -> None:
    flags = {flag for flags in compat.FLAGS.values() for flag in flags.split()}
    assert set(compat.REPLIES) <= flags | {"--no-ws"}


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["--timeout-keep-alive", "5"], {"keep_alive_ms": 5000}),
        (["--keep-alive", "0.5"], {"keep_alive_ms": 500}),
        (["--workers-max-rss", "512"], {"worker_rss_bytes_max": 512 << 20}),
        (["--worker-rss-max", "2G"], {"worker_rss_bytes_max": 2 << 30}),
        (["--reload-tick", "50"], {"reload_delay_s": 0.05}),
        (["-w", "3", "-b", ":1", "-b", "unix:/x"], {"workers": 3, "bind": (":1", "unix:/x")}),
        (["-t", "30", "-u", "me"], {"worker_timeout_s": 30.0, "user": "me"}),
        (["-g", "us", "-m", "27"], {"group": "us", "umask": "27"}),
        (["--limit-max-requests", "7", "--max-requests-jitter", "2"], {"max_requests": 7}),
        (["--error-logfile", "a", "--access-logfile", "b"], {"log_file": "a", "access_log_file": "b"}),
    ],
)  # fmt: skip
def test_aliases_keep_their_units(arguments: list[str], values: dict[str, object]) -> None:
    params = parse(*arguments)
    assert {name: params[name] for name in values} == values


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("uvicorn.workers.UvicornWorker", "not needed: the interface"),
        ("sync", "not needed"),
        ("gthread", "--threads N"),
    ],
)
def test_worker_classes_that_are_not_needed(kind: str, says: str, capsys) -> None:
    parse("-k", kind)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["eventlet", "tornado", "my.Worker"])
def test_worker_classes_that_cannot_be(kind: str) -> None:
    with pytest.raises(click.UsageError, match=f"--worker-class {kind}"):
        parse("-k", kind)


def test_a_configuration_of_gunicorns_is_read_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "gunicorn.conf.py"
    path.write_text(
        "import os\nos._exit(9)\nbind = '0.0.0.0:80'\nworkers = os.cpu_count()\ntimeout = 60\n"
        "keepalive = 5\nraw_env = ['A=b']\numask = 0o27\npreload_app = True\n"
        "worker_class = 'uvicorn.workers.UvicornWorker'\ndef post_fork(server, worker): ...\n"
    )
    done = citius("serve", "shop:app", "-c", str(path))
    assert done.returncode == 2
    toml, _, notes = done.stderr.partition("\n# ")
    toml = toml.partition("be:\n")[2]
    assert "# workers = ...  (was: os.cpu_count())" in done.stderr
    assert "worker_class: not needed: the interface" in notes + done.stderr
    assert "post_fork: use app.on_startup" in done.stderr
    (tmp_path / "pyproject.toml").write_text(
        "\n".join(line for line in done.stderr.splitlines()[1:] if not line.startswith("#"))
    )
    config = load({"app_dir": str(tmp_path)}, {})
    assert (config.bind, config.env, config.umask) == (("0.0.0.0:80",), ("A=b",), "027")
    assert (config.worker_timeout_s, config.limits) == (60, {"keep_alive_ms": 5000})


def test_a_configuration_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="cannot read nothing.py"):
        gunicorn.advice("nothing.py")


@pytest.mark.parametrize(
    ("flag", "name", "value"),
    [
        ("--keep-alive", "keep_alive_ms", 1), ("--timeout-keep-alive", "keep_alive_ms", 1),
        ("--keep-alive-ms", "keep_alive_ms", 0), ("--limit-request-line", "target_bytes_max", NO_LIMIT),
        ("--limit-request-fields", "fields_max", 32768),
        ("--worker-connections", "connections_max", OPTIONS["connections_max"].default),
        ("--h11-max-incomplete-event-size", "head_bytes_max", OPTIONS["head_bytes_max"].default),
        ("--websocket-max-message-size", "ws_message_bytes_max", NO_LIMIT),
        ("--ws-max-size", "ws_message_bytes_max", 0), ("--max-requests", "max_requests", 0),
        ("--timeout", "worker_timeout_s", 0.0), ("--graceful-timeout", "drain_s", 0.0),
        ("--ws-ping-interval", "ws_ping_interval_ms", 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("zero", ["0", "00"])
def test_0_means_what_it_means_to_the_server_that_has_the_flag(
    flag: str, name: str, value: float, zero: str
) -> None:
    """Servers D7."""
    assert parse(flag, zero)[name] == value


@pytest.mark.parametrize(
    "flag",
    [
        "--limit-concurrency", "--limit-max-requests", "--ws-max-queue", "--ws-ping-timeout",
        "--timeout-worker-healthcheck", "--backpressure", "--http1-header-read-timeout",
        "--http2-max-concurrent-streams", "--connections-max", "--head-bytes-max", "--target-bytes-max",
        "--fields-max", "--pipeline-max",
    ],
)  # fmt: skip
def test_a_0_with_which_nothing_would_be_served_is_refused(flag: str) -> None:
    with pytest.raises(click.UsageError) as raised:
        parse(flag, "0")
    assert f"'{flag}'" in raised.value.format_message()


def test_a_short_time_is_not_never() -> None:
    assert parse("--keep-alive", "0.0001")["keep_alive_ms"] == 1
    with pytest.raises(click.UsageError, match="expected a whole number"):
        parse("--keep-alive", "1e999")


def test_0_in_a_configuration_of_gunicorn(tmp_path: Path) -> None:
    path = tmp_path / "gunicorn.conf.py"
    path.write_text(
        "keepalive = 0\nlimit_request_line = 0\nlimit_request_fields = 0\nworker_connections = 0\n"
        "timeout = 0\nmax_requests = 0\nbacklog = 0\n"
    )
    text = gunicorn.advice(str(path))
    assert "keep_alive_ms = 1\n" in text
    assert f"target_bytes_max = {NO_LIMIT}\n" in text
    assert "fields_max = 32768\n" in text
    assert "connections_max" not in text
    assert "worker_timeout_s = 0" in text
    assert (
        "# backlog = ...  (was: 0; --backlog: expected a whole number of connections from 1 to"
        in text
    )
