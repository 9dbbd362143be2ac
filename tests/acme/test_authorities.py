"""What an authority may do wrong: responses that are no ACME or too long, and unusable certificates."""

# pyright: basic

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext
from typing import ClassVar

import pytest

pytest.importorskip("acme")

import requests
import trustme
from acme import client, errors, messages
from citius._core import self_signed_certificate
from citius.errors import ConfigError
from citius.serving.acme import agent, issuing
from citius.serving.acme.agent import Known, Task
from citius.serving.acme.issuing import Authority, Refused
from citius.serving.acme.store import Store, binding_of
from citius.settings.config import Config
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtensionOID, NameOID


class Liar(BaseHTTPRequestHandler):
    """Responds with what a test wants."""

    respond: Callable[[BaseHTTPRequestHandler], None]

    def do_GET(self) -> None:
        """Respond to a request for the directory."""
        type(self).respond(self)

    do_POST = do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def whole(status: int, body: bytes, **fields: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in fields.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return respond


@pytest.fixture
def task(tmp_path: Path) -> Generator[Callable[..., Task]]:
    """A task whose authority responds as given."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = SSLContext(PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = tmp_path / "acme"
    for name in ("", "accounts", "challenges", "http-01"):
        (root / name).mkdir()

    def make(respond: Callable[[BaseHTTPRequestHandler], None]) -> Task:
        Liar.respond = staticmethod(respond)
        return Task(
            ["a.example"], f"https://localhost:{server.server_port}/dir", str(root), -1, -1,
            ["http-01"], ca_certs=str(tmp_path / "ca.pem"),
        )  # fmt: skip

    yield make
    server.shutdown()
    server.server_close()


def store_of(task: Task) -> Store:
    return Store(task.root, task.uid, task.gid)


@pytest.mark.parametrize(
    ("respond", "message"),
    [
        (whole(200, b"<html>hello</html>"), "Unexpected response Content-Type"),
        (whole(200, b"[1, 2]"), "not that of ACME"),
        (whole(200, b"{}"), "not that of ACME"),
        (whole(200, b'{"newNonce": 7, "newAccount": {}}'), "Invalid URL"),
        (whole(200, b"\xff\xfe\x00"), "Unexpected response Content-Type"),
        (whole(302, b"", location="http://127.0.0.1:1/latest/meta-data"), "redirects to http://127"),
        (whole(307, b"", location="https://localhost/\x1b[31m"), "redirects to"),
        (whole(200, b"x" * (issuing.RESPONSE_BYTES_MAX + 1)), "more than 1048576 bytes"),
        (
            whole(429, json.dumps({
                "type": "urn:ietf:params:acme:error:rateLimited", "detail": "too many\ncertificates",
            }).encode(), content_type="application/problem+json", retry_after="3600"),
            "Unexpected response|rateLimited: too many certificates",
        ),
    ],
)  # fmt: skip
def test_what_it_says_is_refused_by_name(task, respond, message: str) -> None:
    asked = task(respond)
    with pytest.raises(Refused, match=message) as refused:
        Authority(asked, store_of(asked))
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 700


def test_a_response_that_never_ends_is_left(task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuing, "RESPONSE_S_MAX", 0.2)
    ends = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not ends.wait(0.01):
            try:
                handler.wfile.write(b" " * 16 * 1024)
                handler.wfile.flush()
            except OSError:
                return

    monkeypatch.setattr(issuing, "RESPONSE_BYTES_MAX", 1 << 40)
    asked = task(drip)
    try:
        with pytest.raises(Refused, match=r"took more than 0\.2 s"):
            Authority(asked, store_of(asked))
    finally:
        ends.set()


def test_requests_go_over_tls_only(task) -> None:
    asked = task(whole(200, b"{}"))
    asked.directory = asked.directory.replace("https", "http")
    with pytest.raises(Refused, match="No connection adapters"):
        Authority(asked, store_of(asked))


def chain_with(names: bytes) -> bytes:
    """A certificate with encoded names; x400Address is a kind that the package does not read."""
    oid = ExtensionOID.SUBJECT_ALTERNATIVE_NAME
    return chain_for(extension=x509.UnrecognizedExtension(oid, names))


def chain_for(
    *names: str,
    days: tuple[float, float] = (-1, 89),
    extension: x509.ExtensionType | None = None,
) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a.example")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
    )
    if names:
        alternatives = x509.SubjectAlternativeName([x509.DNSName(one) for one in names])
        builder = builder.add_extension(alternatives, critical=False)
    if extension is not None:
        builder = builder.add_extension(extension, critical=False)
    from cryptography.hazmat.primitives.serialization import Encoding

    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (chain_for("b.example"), "for b.example, not for a.example"),
        (chain_for(), "cannot be used"),
        (chain_for("a.example", days=(-90, -1)), "it has expired"),
        (chain_with(b"\x30\x04\xa3\x02\x30\x00"), "cannot be used: .*x400"),
        (b"garbage", "cannot be used"),
        (b"", "cannot be used"),
    ],
)
def test_what_it_issues_has_to_be_for_the_name_and_valid(chain: bytes, message: str) -> None:
    with pytest.raises(Refused, match=message):
        issuing._checked(chain, "a.example")


def test_a_usable_certificate_is_taken() -> None:
    begin, end = issuing._checked(chain_for("A.example", "b.example"), "a.example")
    assert begin < time.time() < end


def test_an_order_that_becomes_invalid_has_the_reason() -> None:
    reason = messages.Error.with_code("rejectedIdentifier", detail="on the\x1b list")
    with (
        pytest.raises(Refused, match="rejectedIdentifier: on the  list"),
        issuing._refusals("no certificate"),
    ):
        raise errors.IssuanceError(reason)


def binding_file(tmp_path: Path, text: str, mode: int = 0o600) -> Config:
    path = tmp_path / "eab"
    path.write_text(text)
    path.chmod(mode)
    return Config(acme=("a.example",), acme_eab=str(path))


def test_an_account_is_bound_to_one_that_the_authority_knows(task, tmp_path: Path) -> None:
    key = base64.urlsafe_b64encode(b"secret secret secret").decode()
    asked = task(whole(200, b"{}"))
    asked.binding = binding_of(binding_file(tmp_path, f"kid-1\n{key}\n"))
    authority = Authority.__new__(Authority)
    authority._task, authority._key = (
        asked,
        issuing.JOSE.JWKEC(key=ec.generate_private_key(ec.SECP256R1())),
    )
    directory = messages.Directory({"newAccount": "https://ca.example/account"})
    bound = authority._bound(directory)
    assert bound is not None
    said = json.loads(base64.urlsafe_b64decode(bound["protected"] + "=="))
    assert said == {"alg": "HS256", "kid": "kid-1", "url": "https://ca.example/account"}
    signed = f"{bound['protected']}.{bound['payload']}".encode()
    digest = hmac.digest(b"secret secret secret", signed, "sha256")
    assert base64.urlsafe_b64decode(bound["signature"] + "==") == digest


def test_an_authority_that_wants_a_binding_is_said(task) -> None:
    meta = {"newAccount": "https://localhost/a", "newNonce": "https://localhost/n",
            "meta": {"externalAccountRequired": True}}  # fmt: skip
    asked = task(whole(200, json.dumps(meta).encode(), content_type="application/json"))
    with pytest.raises(Refused, match="give acme_eab"):
        Authority(asked, store_of(asked))


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("kid\n" + "a" * 20, 0o640, "others than its owner may use"),
        ("kid", 0o600, "expected a key identifier and a key"),
        ("kid\nnot base64!", 0o600, "expected a key identifier and a key"),
    ],
)
def test_files_of_bindings_are_checked(tmp_path: Path, text: str, mode: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        binding_of(binding_file(tmp_path, text, mode))


def test_a_binding_that_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read"):
        binding_of(Config(acme=("a.example",), acme_eab=str(tmp_path / "none")))


class Scripted:
    """Stands for an authority."""

    issues: ClassVar[list[object]] = []

    def __init__(self, *_args: object) -> None:
        pass

    def issue(self, _name: str) -> float:
        """Do the next of what a test wants."""
        done = Scripted.issues.pop(0)
        if isinstance(done, Exception):
            raise done
        assert isinstance(done, float)
        return done

    def renew_at(self, _name: str) -> float | None:
        """It does not say."""
        return None


def test_a_clock_that_was_ahead_keeps_no_name_waiting(
    task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuing, "Authority", Scripted)
    asked = task(whole(200, b"{}"))
    store = store_of(asked)
    agent._remember(store, "a.example", Known(failures=1, retry_at=time.time() + 10 * 365 * 86400))
    Scripted.issues = [time.time() + 3600]
    assert agent._round(asked, store) > 3000
    assert agent._known(store, "a.example").failures == 0


def issued(until_s: float = 3600) -> bytes:
    """A key and its certificate, of an authority."""
    now = datetime.datetime.now(datetime.UTC)
    made = trustme.CA().issue_cert(
        "a.example",
        not_before=now - datetime.timedelta(days=1),
        not_after=now + datetime.timedelta(seconds=until_s),
    )
    return made.private_key_and_cert_chain_pem.bytes()


@pytest.mark.parametrize(
    ("content", "is_fetched"),
    [
        (issued(), False),
        (None, True),
        (b"", True),
        (b"-----BEGIN CERTIFICATE-----\nabc", True),
        (self_signed_certificate("a.example").encode(), True),
        (issued(until_s=-60), True),
    ],
    ids=["there", "none", "empty", "damaged", "the server's own", "expired"],
)
def test_a_certificate_that_is_lost_is_fetched_again(
    task, monkeypatch: pytest.MonkeyPatch, content: bytes | None, *, is_fetched: bool
) -> None:
    """What the server signs itself must not serve until the lost one would have been renewed."""
    monkeypatch.setattr(issuing, "Authority", Scripted)
    asked = task(whole(200, b"{}"))
    store = store_of(asked)
    path = Path(store.certificate("a.example"))
    path.parent.mkdir()
    if content is not None:
        path.write_bytes(content)
    agent._remember(store, "a.example", Known(asked.directory, renew_at=time.time() + 60 * 86400))
    Scripted.issues = [time.time() + 3600]
    agent._round(asked, store)
    assert (not Scripted.issues) == is_fetched


def test_an_authority_cannot_keep_a_certificate_until_it_has_expired(task) -> None:
    asked = task(whole(200, b"{}"))
    store = store_of(asked)
    path = Path(store.certificate("a.example"))
    path.parent.mkdir()
    path.write_bytes(issued(until_s=9 * 86400))

    class Late:
        """Says a time that is behind the end."""

        def renewal_time(self, _chain: bytes) -> tuple[datetime.datetime, None]:
            return datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=90), None

    authority = Authority.__new__(Authority)
    authority._store, authority._client = store, Late()  # pyright: ignore[reportAttributeAccessIssue]
    # Ten days of validity, a tenth of which is left.
    assert authority.renew_at("a.example") == pytest.approx(time.time() + 8 * 86400, abs=60)


def test_a_full_disk_is_said_and_waited_for(
    task, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(issuing, "Authority", Scripted)
    asked = task(whole(200, b"{}"))
    asked.names = ["a.example", "b.example"]

    def write(*_args: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "write", write)
    Scripted.issues = [OSError(28, "No space left on device"), time.time() + 3600]
    assert agent._round(asked, store_of(asked)) >= 30
    said = capsys.readouterr().out
    assert "a.example: [Errno 28] No space left on device; the certificate that is there" in said
    assert "a.example: what is known of it cannot be kept" in said
    assert "b.example has a certificate" in said


@pytest.mark.parametrize("content", [b"", b"-----BEGIN PRIVATE KEY-----\nMIGH", b"\0" * 300])
def test_a_damaged_key_of_an_account_is_named(task, content: bytes) -> None:
    """Its message says what to remove: a new account is made then."""
    asked = task(whole(200, b"{}"))
    store = store_of(asked)
    number = hashlib.sha256(asked.directory.encode()).hexdigest()[:16]
    key_file = store.accounts / f"account-{number}.pem"
    key_file.write_bytes(content)
    with pytest.raises(Refused, match=f"{key_file.name} is no key of an account; remove it"):
        Authority(asked, store)
    assert key_file.read_bytes() == content


def test_servers_that_share_a_directory_may_write_at_once(tmp_path: Path) -> None:
    for name in ("accounts", "certificates"):
        (tmp_path / name).mkdir()
    path, failures = str(tmp_path / "certificates/a.example.pem"), list[BaseException]()
    contents = {bytes([letter]) * 5000 for letter in b"abcd"}

    def write(content: bytes) -> None:
        try:
            for _ in range(50):
                Store(str(tmp_path)).write(path, content, 0o600)
                assert Path(path).read_bytes() in contents
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failures


@pytest.mark.parametrize(
    "said",
    [
        [], 7, {}, {"suggestedWindow": 7}, {"suggestedWindow": {}},
        {"suggestedWindow": {"start": "2026-01-01T00:00:00Z"}},
        {"suggestedWindow": {"start": "soon", "end": "later"}},
        {"suggestedWindow": {"start": 1, "end": 2}},
    ],
)  # fmt: skip
def test_a_time_of_renewal_that_is_malformed_is_none(task, said: object) -> None:
    """Otherwise no name would be renewed, that of the certificate and those behind it."""
    asked = task(whole(200, b"{}"))
    store = store_of(asked)
    path = Path(store.certificate("a.example"))
    path.parent.mkdir()
    path.write_bytes(issued(until_s=9 * 86400))

    class Network:
        """Gives the response."""

        def get(self, _url: str, **_options: object) -> requests.Response:
            response = requests.Response()
            response._content = json.dumps(said).encode()
            return response

    authority = Authority.__new__(Authority)
    directory = messages.Directory({"renewalInfo": "https://localhost/renewal"})
    authority._store = store
    authority._client = client.ClientV2(directory, Network())  # pyright: ignore[reportArgumentType]
    assert authority.renew_at("a.example") is None
