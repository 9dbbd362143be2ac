"""URLs: what they say, and what is refused without showing a password."""

from __future__ import annotations

import pytest
from citius.errors import ConfigError
from citius.redis.urls import Address, parse


def test_redis() -> None:
    target = parse("redis://user:p%40ss@example.com:7000/3?client_name=shop")
    assert target.addresses == (Address("example.com", 7000),)
    assert (target.user, target.password, target.database) == ("user", "p@ss", 3)
    assert (target.client_name, target.tls) == ("shop", None)
    assert str(target) == "example.com:7000"
    assert parse("redis://").addresses == (Address("localhost", 6379),)
    assert parse("redis://h?db=5").database == 5
    assert parse("redis://:p@h").password == "p"
    assert parse("redis://u@h").password is None
    several = parse("redis://:p@a,b:7000,[::1]:7001")
    assert several.addresses == (Address("a", 6379), Address("b", 7000), Address("::1", 7001))
    assert str(several) == "a:6379, b:7000, [::1]:7001"
    assert str(several.at(several.addresses[1])) == "b:7000"


def test_unix() -> None:
    target = parse("unix://:p@/run/redis.sock?db=2")
    assert target.addresses == (Address("", 0, "/run/redis.sock"),)
    assert (target.password, target.database) == ("p", 2)
    assert str(target) == "/run/redis.sock"


def test_sentinels() -> None:
    target = parse("redis+sentinel://:p@a,b:7/mymaster/4")
    assert target.addresses == (Address("a", 26379), Address("b", 7))
    assert (target.service, target.database) == ("mymaster", 4)
    assert str(target) == "master mymaster of a:26379, b:7"
    assert parse("rediss+sentinel://a/m").tls is not None


def test_tls() -> None:
    tls = parse("rediss://h").tls
    assert tls is not None
    assert (tls.verification, tls.authorities, tls.identity, tls.version_min) == (
        "full",
        None,
        None,
        "tls1.2",
    )
    url = "rediss://h?ssl_ca_certs=/ca&ssl_certfile=/c&ssl_keyfile=/k&ssl_check_hostname=false&ssl_min_version=TLSv1.3"
    tls = parse(url).tls
    assert tls is not None
    assert (tls.verification, tls.authorities, tls.identity) == ("authority", "/ca", ("/c", "/k"))
    assert tls.version_min == "tls1.3"
    off = parse("rediss://h?ssl_cert_reqs=none&ssl_password=secret").tls
    assert off is not None
    assert off.verification == "off"
    assert "secret" not in repr(off)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:6379", "which begins with redis://"),
        ("http://secret@h", "which begins with redis://"),
        ("secret", "which begins with redis://"),
        ("redis://secret@h:x", "expected host:port"),
        ("redis://:6379/secret@h", "number of a database"),
        ("redis://:secret#1@h", "written %23"),
        ("redis://h:99999", "expected host:port"),
        ("redis://h/x", "number of a database"),
        ("redis://h/-1", "number of a database"),
        ("redis://h?db=99999999999", "number of a database"),
        ("redis://h?timeout=1", "unknown option 'timeout'"),
        ("redis://h?db", "cannot be read"),
        ("unix://", "needs a path"),
        ("redis+sentinel://h", "needs the name of the master"),
        ("redis://h?sentinel_password=p", "are for redis.sentinel:// and"),
        ("rediss://h?ssl_cert_reqs=maybe", "required or none"),
        ("rediss://h?ssl_check_hostname=maybe", "true or false"),
        ("rediss://h?ssl_certfile=/c", "belong together"),
    ],
)
def test_what_is_refused(url: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse(url)
    assert "secret" not in str(caught.value)
