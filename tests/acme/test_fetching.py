"""Certificates are fetched, renewed and kept by ``--acme``, from a real authority (Pebble)."""

from __future__ import annotations

import base64
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from acme_rig import REFUSED, Pebble
from rig import USER, Server, children, wait_for

Fetching = Callable[..., Server]
FETCHED = r"acme: {} has a certificate of https://localhost"


def is_agent(pid: int) -> bool:
    try:
        return b"citius.serving.acme" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return True


def workers_of(server: Server, count: int) -> set[int]:
    """So many processes that are no agent; one that is to be it has the supervisor's name at first."""
    found = set[int]()

    def are_all() -> bool:
        found.clear()
        found.update(pid for pid in children(server) if not is_agent(pid))
        return len(found) == count

    wait_for(are_all, f"{count} workers")
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("options", [[], ["--sandbox"], ["--http", "1,2,3"]])
def test_names_get_certificates_by_tls(
    pebble: Pebble, fetching: Fetching, options: list[str]
) -> None:
    """Any of several workers answers the authority; none is restarted for what it has issued."""
    server = fetching(
        pebble, "--acme", "a.example", "--acme", "b.example", "--workers", "2", *options
    )
    workers = workers_of(server, 2)
    for name in ("a.example", "b.example"):
        server.wait_for_log(FETCHED.format(name))
    wait_for(lambda: "Pebble" in pebble.issuer("a.example"), "the new certificate")
    wait_for(lambda: "Pebble" in pebble.issuer("b.example"), "the new certificate")
    assert pebble.verified("a.example") != pebble.verified("b.example")
    wait_for(lambda: set(children(server)) == workers, "the end of the agent")


def test_names_get_certificates_by_http(pebble: Pebble, fetching: Fetching) -> None:
    listener = ["--redirect-http", f"127.0.0.1:{pebble.http}", "--acme-challenge", "http-01"]
    server = fetching(pebble, "--acme", "a.example", "--workers", "2", *listener)
    server.wait_for_log(FETCHED.format("a.example"))
    wait_for(lambda: "Pebble" in pebble.issuer("a.example"), "the new certificate")
    assert list((pebble.directory / "acme/http-01").iterdir()) == []


def test_what_fails_by_tls_is_tried_by_http(
    pebble: Pebble, fetching: Fetching, unused_port: int
) -> None:
    """The authority finds nothing where it asks by TLS, as behind a proxy that ends it."""
    listener = ["--redirect-http", f"127.0.0.1:{pebble.http}", "--port", str(unused_port)]
    server = fetching(pebble, "--acme", "a.example", *listener)
    server.wait_for_log(FETCHED.format("a.example"))


def test_a_certificate_of_its_own_serves_until_the_first(
    pebble: Pebble, fetching: Fetching
) -> None:
    """And the log has the authority's own words."""
    server = fetching(pebble, "--acme", REFUSED, "--acme", "b.example")
    server.wait_for_log(r"acme: refused.example: .*rejectedIdentifier.*another try in 60 s")
    server.wait_for_log(FETCHED.format("b.example"))
    assert "Citius" in pebble.issuer(REFUSED)


def test_an_authority_that_is_away_is_said(pebble: Pebble, fetching: Fetching) -> None:
    server = fetching(pebble, "--acme", "a.example")
    server.wait_for_log(FETCHED.format("a.example"))
    wait_for(lambda: "Pebble" in pebble.issuer("a.example"), "the new certificate")
    server.stop()
    pebble.stop()
    # A certificate that is to be renewed, and nothing to renew it by.
    (pebble.directory / "acme/accounts/a.example.json").unlink(missing_ok=True)
    again = fetching(pebble, "--acme", "a.example")
    again.wait_for_log(
        r"acme: a.example: cannot use https://localhost.*serves on, another try in 60 s"
    )
    assert "Pebble" in pebble.issuer("a.example")


def test_a_failed_check_has_the_reason_of_the_authority(
    pebble: Pebble, fetching: Fetching, unused_port: int
) -> None:
    server = fetching(pebble, "--acme", "a.example", "--port", str(unused_port))
    server.wait_for_log(
        r"tls-alpn-01: no certificate: \w+: Failed to connect to 127\.0\.0\.1:\d+ for the tls-alpn-01"
    )


def test_certificates_are_renewed_and_used_without_a_reload(
    authority: Callable[..., Pebble], fetching: Fetching
) -> None:
    pebble = authority(validity_s=6)
    server = fetching(pebble, "--acme", "a.example", "--workers", "2")
    server.wait_for_log(FETCHED.format("a.example"))
    workers = workers_of(server, 2)
    wait_for(lambda: "Pebble" in pebble.issuer("a.example"), "the first certificate")
    first = pebble.shown("a.example")
    server.wait_for_log(FETCHED.format("a.example"), 2)
    wait_for(lambda: pebble.shown("a.example") != first, "the second certificate")
    assert workers_of(server, 2) == workers
    assert "replacing" not in server.err


def test_a_certificate_that_is_there_is_not_fetched_again(
    pebble: Pebble, fetching: Fetching
) -> None:
    server = fetching(pebble, "--acme", "a.example")
    server.wait_for_log(FETCHED.format("a.example"))
    wait_for(lambda: "Pebble" in pebble.issuer("a.example"), "the new certificate")
    own = pebble.shown("a.example")
    server.stop()
    again = fetching(pebble, "--acme", "a.example", "--log-level", "debug")
    assert pebble.shown("a.example") == own
    # A restart asks again, and finds nothing to do.
    again.signal(signal.SIGHUP)
    again.wait_for_log("all workers are new")
    assert pebble.shown("a.example") == own
    assert "has a certificate" not in again.err


def test_a_reload_takes_more_names(pebble: Pebble, fetching: Fetching, tmp_path: Path) -> None:
    settings = tmp_path / "citius.toml"
    settings.write_text('acme = ["a.example"]\n')
    server = fetching(pebble, "--config", str(settings))
    server.wait_for_log(FETCHED.format("a.example"))
    settings.write_text('acme = ["a.example", "b.example"]\n')
    server.signal(signal.SIGHUP)
    server.wait_for_log(FETCHED.format("b.example"))
    wait_for(lambda: "Pebble" in pebble.issuer("b.example"), "the new certificate")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server for a user")
def test_keys_are_for_those_who_need_them(
    pebble: Pebble, fetching: Fetching, tmp_path: Path
) -> None:
    """The workers' user reads the keys of certificates, and not that of the account."""
    for place in (tmp_path, *tmp_path.parents):
        if place == Path(tempfile.gettempdir()):
            break
        place.chmod(0o755)
    try:
        subprocess.run([sys.executable, "-c", "import citius"], user=USER, check=True, cwd="/")
    except (PermissionError, subprocess.CalledProcessError):
        pytest.skip("this Python is root's alone")
    who = ["--user", str(USER), "--group", str(USER)]
    server = fetching(pebble, "--acme", "a.example", "--workers", "2", *who)
    server.wait_for_log(FETCHED.format("a.example"))
    wait_for(lambda: "Pebble" in pebble.issuer("a.example"), "the new certificate")
    root = pebble.directory / "acme"
    own = root / "certificates/a.example.pem"
    assert (mode(own), own.stat().st_uid) == (0o600, USER)
    assert (mode(root / "accounts"), (root / "accounts").stat().st_uid) == (0o700, 0)
    for path in (root / "accounts").iterdir():
        assert (mode(path), path.stat().st_uid) == (0o600, 0)
    # What workers could write they could exchange for a link that root follows.
    for path in (root, *root.iterdir()):
        assert path.stat().st_uid == 0
        assert not mode(path) & (stat.S_IWGRP | stat.S_IWOTH)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts a server for a user")
def test_a_directory_of_the_workers_user_is_refused(
    pebble: Pebble, fetching: Fetching, directory: Path
) -> None:
    (directory / "acme").mkdir()
    os.chown(directory / "acme", USER, USER)
    with pytest.raises(AssertionError, match=r"acme_dir: the workers' user can change .*/acme"):
        fetching(pebble, "--acme", "a.example", "--user", str(USER), "--group", str(USER))


def test_the_agent_ends_with_its_server(pebble: Pebble, fetching: Fetching) -> None:
    pebble.pause()
    server = fetching(pebble, "--acme", "a.example")
    wait_for(lambda: any(map(is_agent, children(server))), "the agent")
    (agent,) = filter(is_agent, children(server))
    server.process.kill()
    wait_for(lambda: not Path(f"/proc/{agent}").exists() or _is_dead(agent), "its end")


def _is_dead(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


KEY = base64.urlsafe_b64encode(b"a key of thirty-two bytes, shared").decode().rstrip("=")


def bound(pebble: Pebble, kid: str, key: str) -> list[str]:
    """Options of a server whose account is bound to one that the authority knows."""
    path = pebble.directory / "eab"
    path.write_text(f"{kid}\n{key}\n")
    path.chmod(0o600)
    return ["--acme", "a.example", "--acme-eab", str(path)]


def test_an_account_is_bound_to_one_that_the_authority_knows(
    authority: Callable[..., Pebble], fetching: Fetching
) -> None:
    """External account binding (RFC 8555 §7.3.4), and its absence."""
    pebble = authority(bound_to=("kid-1", KEY))
    unbound = fetching(pebble, "--acme", "a.example")
    unbound.wait_for_log(r"acme: a.example: .*give acme_eab.*another try in 60 s")
    unbound.stop()
    again = fetching(pebble, "--acme", "a.example")
    again.wait_for_log(r"acme: a.example has failed once; another try in \d+ s")
    again.stop()
    # What is asked with another account is no further try.
    server = fetching(pebble, *bound(pebble, "kid-1", KEY))
    server.wait_for_log(FETCHED.format("a.example"))
    wait_for(lambda: "Pebble" in pebble.issuer("a.example"), "the new certificate")
    assert KEY not in server.err + unbound.err


@pytest.mark.parametrize(
    ("kid", "key", "reason"),
    [("kid-1", KEY[::-1], "verification"), ("kid-2", KEY, "not known to the ACME server")],
)
def test_a_binding_that_the_authority_refuses_has_its_reason(
    authority: Callable[..., Pebble], fetching: Fetching, kid: str, key: str, reason: str
) -> None:
    pebble = authority(bound_to=("kid-1", KEY))
    server = fetching(pebble, *bound(pebble, kid, key))
    server.wait_for_log(rf"acme: a.example: .*(?:{reason}).*another try in 60 s")
    assert "Citius" in pebble.issuer("a.example")
    assert key not in server.err
