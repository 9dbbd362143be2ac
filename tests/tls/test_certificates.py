"""Whose certificates: the server's by name, the clients' by authority, all renewed while it serves."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import re
import shutil
import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme
from citius.errors import ConfigError
from citius.serving.tls import load
from citius.settings.config import Config
from pki import APP, Pki, connect, revocation_list, run
from rig import Peer, Server, children, citius, wait_for


def about(peer: Peer) -> dict[str, object]:
    return json.loads(peer.request("GET", "/about").body)


def is_refused(
    server: Server, context: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> bool:
    """Whether a client with this certificate and session is not served."""
    try:
        with connect(server, context, session=session) as peer:
            about(peer)
    except (ssl.SSLError, ConnectionError, EOFError):
        return True
    return False


def shown(server: Server, pki: Pki, name: str) -> list[str]:
    """The names of the certificate for the server name ``name``."""
    context = pki.client()
    context.check_hostname = False
    with connect(server, context, name) as peer:
        names = peer.socket.getpeercert()["subjectAltName"]  # pyright: ignore
    return [value for _, value in names]


def test_names_choose_certificates(serve: Callable[..., Server], pki: Pki) -> None:
    pairs = [pki.issue("first.example"), pki.issue("*.example.org"), pki.issue("api.example.org")]
    options = [text for c, k in pairs for text in ("--ssl-certfile", c, "--ssl-keyfile", k)]
    server = serve(APP, *options)
    for name, expected in (
        ("api.example.org", "api.example.org"), ("www.example.org", "*.example.org"),
        ("first.example", "first.example"), ("unknown.example", "first.example"),
        ("a.b.example.org", "first.example"),
    ):  # fmt: skip
        assert shown(server, pki, name) == [expected], name


def test_clients_show_theirs(secured: Callable[..., Server], pki: Pki) -> None:
    alice = pki.issue("alice@example.org", file="alice")
    stranger = Pki(trustme.CA(), pki.directory / "elsewhere")
    stranger.directory.mkdir()
    eve = stranger.issue("eve@example.org", file="eve")
    for how, version in (("optional", ssl.TLSVersion.TLSv1_3), ("1", ssl.TLSVersion.TLSv1_2),
                         ("required", ssl.TLSVersion.TLSv1_3), ("2", ssl.TLSVersion.TLSv1_2)):  # fmt: skip
        server = secured("--ssl-cert-reqs", how, "--ssl-ca-certs", pki.bundle)
        with connect(server, pki.client(*alice, version=version)) as peer:
            said = about(peer)
            assert "CN=alice@example.org" in str(said["client_name"])
            assert said["chain"]
        if how in ("optional", "1"):
            with connect(server, pki.client(version=version)) as peer:
                assert (about(peer)["client_name"], about(peer)["chain"]) == (None, 0)
        else:
            with (
                pytest.raises((ssl.SSLError, ConnectionError)),
                connect(server, pki.client(version=version)) as peer,
            ):
                about(peer)
        with (
            pytest.raises((ssl.SSLError, ConnectionError)),
            connect(server, pki.client(*eve, version=version)) as peer,
        ):
            about(peer)


def test_revoked_ones_are_refused_and_so_are_their_sessions(
    secured: Callable[..., Server], pki: Pki
) -> None:
    alice = pki.issue("alice@example.org", file="alice")
    mallory = pki.issue("mallory@example.org", file="mallory")
    crl = revocation_list(pki, mallory[0])
    server = secured("--ssl-cert-reqs", "required", "--ssl-ca-certs", pki.bundle, "--ssl-crl", crl)
    context = pki.client(*alice, version=ssl.TLSVersion.TLSv1_2)
    with connect(server, context) as peer:
        about(peer)
        session = peer.socket.session  # pyright: ignore
    with connect(server, context, session=session) as peer:
        assert about(peer)["resumed"] is True
        assert "CN=alice@example.org" in str(about(peer)["client_name"])
    with (
        pytest.raises((ssl.SSLError, ConnectionError)),
        connect(server, pki.client(*mallory)) as peer,
    ):
        about(peer)
    revocation_list(pki, mallory[0], alice[0])
    wait_for(lambda: is_refused(server, context, session), "the new list")


def test_expired_ones_do_not_return_with_a_session(
    secured: Callable[..., Server], pki: Pki
) -> None:
    server = secured("--ssl-cert-reqs", "required", "--ssl-ca-certs", pki.bundle)
    # Time for the handshakes below on a busy machine; after it the test waits for the end.
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=8)
    made = pki.ca.issue_cert("alice@example.org", not_after=end)
    shown = pki.directory / "short-lived.pem"
    shown.write_bytes(made.private_key_and_cert_chain_pem.bytes())
    kept: list[tuple[ssl.SSLContext, ssl.SSLSession]] = []
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = pki.client(str(shown), version=version)
        session = None
        for is_resumed in (False, True):
            with connect(server, context, session=session) as peer:
                assert about(peer)["resumed"] is is_resumed
                session = peer.socket.session  # pyright: ignore
                kept.append((context, session))

    wait_for(lambda: is_refused(server, context), "the end of the certificate")
    for context, session in kept:
        assert is_refused(server, context, session)


def test_new_files_without_a_restart(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured()
    context = pki.client()

    def serial() -> str:
        with connect(server, context) as peer:
            peer.request("GET", "/")
            return peer.socket.getpeercert()["serialNumber"]  # pyright: ignore

    before = serial()
    certificate, _ = pki.directory / "localhost.pem", pki.directory / "localhost-key.pem"
    with connect(server, context) as open_one:
        open_one.request("GET", "/")
        certificate.write_text("broken")
        wait_for(lambda: serial() == before and "cannot be used" in server.err, "a complaint")
        server.wait_for_log("has no certificate")
        assert server.err.count("cannot be used") == 1
        pki.issue("localhost", "127.0.0.1")
        wait_for(lambda: serial() != before, "the new certificate")
        server.wait_for_log("new connections use them")
        # The open one goes on with what it has agreed on.
        assert open_one.request("GET", "/").body == b"Hello"


def test_hup_takes_over_good_options_only(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured("--workers", "2")
    before = set(children(server))
    key = pki.directory / "localhost-key.pem"
    good = key.read_bytes()
    key.write_text("broken")
    server.signal(signal.SIGHUP)
    server.wait_for_log("the configuration is not taken over: TLS")
    assert set(children(server)) == before
    key.write_bytes(good)
    server.signal(signal.SIGHUP)
    wait_for(lambda: not before & set(children(server)), "new workers")
    with connect(server, pki.client()) as peer:
        assert peer.request("GET", "/").body == b"Hello"


def test_sessions_go_on_with_other_workers(secured: Callable[..., Server], pki: Pki) -> None:
    server = secured("--workers", "3")
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = pki.client(version=version)
        with connect(server, context) as peer:
            assert about(peer)["resumed"] is False
            session = peer.socket.session  # pyright: ignore
        workers = set()
        for _ in range(60):
            with connect(server, context, session=session) as peer:
                said = about(peer)
            assert said["resumed"] is True
            workers.add(said["pid"])
        assert len(workers) == 3, version


def test_openssl_takes_sessions_up(
    secured: Callable[..., Server], pki: Pki, tmp_path: Path
) -> None:
    server = secured()
    address, kept = f"127.0.0.1:{server.port}", str(tmp_path / "session")
    for version in ("-tls1_2", "-tls1_3"):
        ask = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        done = run(
            "openssl",
            "s_client",
            "-connect",
            address,
            version,
            "-ign_eof",
            "-sess_out",
            kept,
            stdin=ask,
        )
        assert "\nNew, TLSv1" in done.stdout
        done = run(
            "openssl",
            "s_client",
            "-connect",
            address,
            version,
            "-ign_eof",
            "-sess_in",
            kept,
            stdin=ask,
        )
        assert "\nReused, TLSv1" in done.stdout
        assert done.stdout.rstrip().endswith("Hello") or "Hello" in done.stdout


@pytest.mark.parametrize("form", ["pkcs8", "pkcs1", "sec1", "encrypted", "in one file"])
def test_forms_of_keys(serve: Callable[..., Server], pki: Pki, tmp_path: Path, form: str) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    kind = trustme.KeyType.RSA if form == "pkcs1" else trustme.KeyType.ECDSA
    made = pki.ca.issue_cert("localhost", key_type=kind)
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_bytes(b"".join(blob.bytes() for blob in made.cert_chain_pems))
    raw = tmp_path / "raw.pem"
    raw.write_bytes(made.private_key_pem.bytes())
    given = ["--ssl-certfile", str(certificate), "--ssl-keyfile", str(key)]
    env = {}
    if form == "encrypted":
        run(
            "openssl",
            "pkcs8",
            "-topk8",
            "-in",
            str(raw),
            "-out",
            str(key),
            "-passout",
            "pass:sesame",
        )
        env = {"CITIUS_SSL_KEYFILE_PASSWORD": "sesame"}
    elif form == "in one file":
        certificate.write_bytes(certificate.read_bytes() + raw.read_bytes())
        given = given[:2]
    else:
        command = {
            "pkcs8": ["pkcs8", "-topk8", "-nocrypt"],
            "pkcs1": ["rsa", "-traditional"],
            "sec1": ["ec"],
        }[form]
        done = run("openssl", *command, "-in", str(raw), "-out", str(key))
        assert done.returncode == 0, done.stderr
        header = {
            "pkcs8": "BEGIN PRIVATE",
            "pkcs1": "BEGIN RSA PRIVATE",
            "sec1": "BEGIN EC PRIVATE",
        }[form]
        assert header in key.read_text()
    server = serve(APP, *given, env=env)
    with connect(server, pki.client()) as peer:
        assert peer.request("GET", "/").body == b"Hello"


def test_what_cannot_be_is_said_before_there_are_sockets(pki: Pki, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("from citius import App\napp = App()\n")
    certificate, key = pki.issue("localhost")
    other = pki.issue("other.example")[1]
    expired = pki.ca.issue_cert(
        "localhost", not_after=datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    )
    old = pki.directory / "old.pem"
    old.write_bytes(expired.private_key_and_cert_chain_pem.bytes())

    def said(*options: str, code: int) -> str:
        done = citius("serve", "main.py", "--check-config", *options, cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done.stderr

    pair = ("--ssl-certfile", certificate, "--ssl-keyfile", key)
    assert "no such file" in said("--ssl-certfile", "/nowhere.pem", code=3)
    assert "do not belong together" in said(
        "--ssl-certfile", certificate, "--ssl-keyfile", other, code=3
    )
    assert "--ssl-ca-certs" in said(*pair, "--ssl-cert-reqs", "required", code=3)
    assert "RC4" in said(*pair, "--ssl-ciphers", "RC4-SHA", code=3)
    assert "key without a certificate" in said("--ssl-keyfile", key, code=2)
    assert "one key for each" in said("--ssl-certfile", certificate, *pair, code=2)
    assert "is about TLS" in said("--ssl-ciphers", "ECDHE", code=2)
    assert "contradict" in said(*pair, "--ssl-dev", code=2)
    assert "has expired" in said("--ssl-certfile", str(old), code=0)
    os.chmod(key, 0o644)
    assert "chmod 600" in said(*pair, code=0)
    done = citius("serve", "main.py", "--port", "0", "--ssl-certfile", "/nowhere.pem", cwd=tmp_path)
    assert done.returncode == 3
    assert "cannot read the certificate /nowhere.pem" in done.stderr
    done = citius(
        "serve",
        "main.py",
        *pair,
        "--print-config",
        "--ssl-keyfile-password",
        "sesame",
        cwd=tmp_path,
    )
    assert "sesame" not in done.stdout
    assert "ssl_keyfile_password" in done.stdout


def test_revocation_lists_without_effect_are_warned_about(pki: Pki) -> None:
    certificate, key = pki.issue("localhost")
    shown = {"ssl_certfile": (certificate,), "ssl_keyfile": (key,)}
    asked = {"ssl_cert_reqs": "required", "ssl_ca_certs": pki.bundle}

    def warnings(**options: Any) -> list[str]:
        tls = load(Config(**shown, **options))
        assert tls is not None
        return tls.warnings

    good = revocation_list(pki)
    assert warnings(**asked, ssl_crl=(good,)) == []
    (warning,) = warnings(ssl_crl=(good,))
    assert warning.startswith("--ssl-crl has no effect without --ssl-cert-reqs")
    (warning,) = warnings(**asked, ssl_crl=(revocation_list(pki, days=-1),))
    assert (
        "crl.pem is past its next update: no client certificate of its issuer is accepted"
        in warning
    )


def test_a_chain_in_the_wrong_order_is_named_as_that(pki: Pki, tmp_path: Path) -> None:
    certificate, key = pki.issue("localhost")
    chain = tmp_path / "chain.pem"
    chain.write_text(Path(pki.bundle).read_text() + Path(certificate).read_text())
    with pytest.raises(
        ConfigError, match="the chain is in the wrong order: the server's own certificate is"
    ):
        load(Config(ssl_certfile=(str(chain),), ssl_keyfile=(key,)))
    other = Pki(trustme.CA(), tmp_path)
    chain.write_text(Path(certificate).read_text() + Path(other.bundle).read_text())
    tls = load(Config(ssl_certfile=(str(chain),), ssl_keyfile=(key,)))
    assert tls is not None
    assert [
        "is in the wrong order, which some clients refuse" in text for text in tls.warnings
    ] == [True]
    _, stranger = pki.issue("elsewhere")
    with pytest.raises(ConfigError, match="they do not belong together"):
        load(Config(ssl_certfile=(certificate,), ssl_keyfile=(stranger,)))


def test_flags_of_other_servers(serve: Callable[..., Server], pki: Pki) -> None:
    certificate, key = pki.issue("localhost")
    for flags in (
        (
            "--certfile",
            certificate,
            "--keyfile",
            key,
            "--ciphers",
            "ECDHE+AESGCM",
            "--cert-reqs",
            "0",
        ),
        ("--ssl-certificate", certificate, "--ssl-keyfile", key, "--ssl-protocol-min", "tls1.3"),
        (
            "--ssl-certfile",
            certificate,
            "--ssl-keyfile",
            key,
            "--ssl-version",
            "17",
            "--ssl-ciphers",
            "TLSv1",
        ),
    ):
        server = serve(APP, *flags)
        with connect(server, pki.client()) as peer:
            assert about(peer)["cipher"] == "TLS_AES_256_GCM_SHA384"
    with pytest.raises(ssl.SSLError):
        server = serve(
            APP,
            "--ssl-certificate",
            certificate,
            "--ssl-keyfile",
            key,
            "--ssl-protocol-min",
            "tls1.3",
        )
        connect(server, pki.client(version=ssl.TLSVersion.TLSv1_2))


def test_the_development_certificate_lasts(serve: Callable[..., Server], tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    prints = []
    for word in ("made", "kept"):
        server = serve(APP, "--ssl-dev", env=env)
        found = re.search(rf"certificate {word} in (\S+), SHA-256 ([0-9A-F:]{{95}})", server.err)
        assert found, server.err
        prints.append(found[2])
        context = ssl.create_default_context(cafile=found[1])
        with connect(server, context) as peer:
            assert peer.request("GET", "/").body == b"Hello"
            der = peer.socket.getpeercert(binary_form=True)  # pyright: ignore
        assert hashlib.sha256(der).digest().hex(":").upper() == found[2]
    assert prints[0] == prints[1]
    key = tmp_path / "cache/citius/localhost-key.pem"
    assert key.stat().st_mode & 0o777 == 0o600
