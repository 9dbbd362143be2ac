"""A real browser on WebTransport: datagrams, streams of every kind and direction, close codes."""

# pyright: basic

from __future__ import annotations

import base64
import datetime
import hashlib
import re
from pathlib import Path

import pytest
from browser import Browser
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.x509.oid import NameOID
from firefox import Firefox
from rig import application

COMMON = """
const all = async (readable) => {
  const parts = [];
  for await (const part of readable) parts.push(new TextDecoder().decode(part));
  return parts.join("");
};
const write = async (writable, text) => {
  const writer = writable.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
};
const open = async (path) => {
  const hash = Uint8Array.from(atob("HASH"), (one) => one.charCodeAt(0));
  const transport = new WebTransport(location.origin + path, {
    serverCertificateHashes: [{ algorithm: "sha-256", value: hash }],
  });
  await transport.ready;
  return transport;
};
"""
ECHO = """(async () => { COMMON
  const transport = await open("/echo");
  const told = [];
  const writer = transport.datagrams.writable.getWriter();
  await writer.write(new TextEncoder().encode("datagram"));
  const reader = transport.datagrams.readable.getReader();
  told.push(new TextDecoder().decode((await reader.read()).value));
  const both = await transport.createBidirectionalStream();
  await write(both.writable, "x".repeat(200000));
  told.push((await all(both.readable)).length);
  await write(await transport.createUnidirectionalStream(), "one way");
  const incoming = transport.incomingUnidirectionalStreams.getReader();
  told.push(await all((await incoming.read()).value));
  transport.close({ closeCode: 4711, reason: "by the page" });
  await transport.closed;
  return told;
})()"""
OPENED = """(async () => { COMMON
  const transport = await open("/opens");
  const both = (await transport.incomingBidirectionalStreams.getReader().read()).value;
  const one = (await transport.incomingUnidirectionalStreams.getReader().read()).value;
  await write(both.writable, "from the page");
  return [await all(both.readable), await all(one)];
})()"""
RESET = """(async () => { COMMON
  const transport = await open("/codes");
  const both = await transport.createBidirectionalStream();
  const writer = both.writable.getWriter();
  await writer.write(new TextEncoder().encode("r"));
  const error = await both.readable.getReader().read().catch((error) => error);
  return [error.source, error.streamErrorCode];
})()"""
CLOSED = """(async () => { COMMON
  const transport = await open("/fails");
  await transport.datagrams.writable.getWriter().write(new Uint8Array(1));
  const { closeCode, reason } = await transport.closed;
  const refused = await open("/refuses").then(() => "open", (error) => error.name);
  return [closeCode, reason, refused];
})()"""
CALLS = """(async () => { COMMON
  CLIENT
  const transport = await open("/rpc");
  const told = [await call(transport, "math.add", [1, 2]), await call(transport, "math.add", { a: 5 })];
  const error = await call(transport, "find", [4]).catch((error) => error);
  return [...told, error.type, error.data.id];
})()"""
CANCELS = """(async () => { COMMON
  CLIENT
  const events = () => fetch("/events").then((reply) => reply.json());
  const until = async (event) => { while (!(await events()).includes(event)); };
  const transport = await open("/rpc");
  const controller = new AbortController();
  const waiting = call(transport, "wait", ["page"], controller.signal).catch((error) => error);
  await until("page waits");
  controller.abort();
  await until("page is cancelled");
  return [(await waiting).name, "page is cancelled"];
})()"""
DRAINED = """(async () => { COMMON
  const transport = await open("/drains");
  window.drained = (async () => {
    const one = (await transport.incomingUnidirectionalStreams.getReader().read()).value;
    const words = await all(one);
    const { closeCode } = await transport.closed;
    return [words, closeCode];
  })();
})()"""


@pytest.fixture
def short_lived(tmp_path: Path) -> tuple[str, str]:
    """A certificate that pages may trust by its hash: ECDSA, of at most 14 days."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=10))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.write_bytes(made.public_bytes(Encoding.PEM))
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    private.write_bytes(text)
    return str(certificate), str(private)


def served(serve, short_lived, name: str):
    """A server, what completes scripts for it, and how the browser knows its key."""
    server = serve(
        application(name),
        *("--ssl-certfile", short_lived[0], "--ssl-keyfile", short_lived[1], "--http", "1,2,3"),
    )
    made = x509.load_pem_x509_certificate(Path(short_lived[0]).read_bytes())
    hashed = base64.b64encode(made.fingerprint(hashes.SHA256())).decode()
    key = made.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pin = base64.b64encode(hashlib.sha256(key).digest()).decode()

    def script(text: str) -> str:
        return text.replace("COMMON", COMMON.replace("HASH", hashed))

    return server, script, pin


def test_a_browser(serve, short_lived, tmp_path: Path) -> None:
    server, script, pin = served(serve, short_lived, "webtransport_app")
    browser = Browser(tmp_path / "browser", f"--ignore-certificate-errors-spki-list={pin}")
    try:
        browser.open(f"https://127.0.0.1:{server.port}/events")
        assert browser.run(script(ECHO)) == ["datagram", 200_000, "one way"]
        assert browser.run(script(OPENED)) == ["both", "one from the page"]
        assert browser.run(script(RESET)) == ["stream", 7]
        assert browser.run(script(CLOSED)) == [1011, "", "WebTransportError"]
        told = browser.run("fetch('/events').then((answer) => answer.json())")
        assert "closed 4711 by the page" in told
        browser.run(script(DRAINED))
        server.process.terminate()
        assert browser.run("window.drained") == ["last words", 1012]
    finally:
        browser.close()


def test_firefox(serve, short_lived, tmp_path: Path) -> None:
    server, script, _ = served(serve, short_lived, "webtransport_app")
    browser = Firefox(tmp_path / "browser")
    try:
        browser.open(f"https://127.0.0.1:{server.port}/events")
        assert browser.run(script(ECHO)) == ["datagram", 200_000, "one way"]
        assert browser.run(script(OPENED)) == ["both", "one from the page"]
        # Of a reset Firefox tells the code, or only that reading has failed.
        assert browser.run(script(RESET)) in (["stream", 7], [None, None])
        assert browser.run(script(CLOSED)) == [1011, "", "WebTransportError"]
        told = browser.run("fetch('/events').then((answer) => answer.json())")
        assert "closed 4711 by the page" in told
        browser.run(script(DRAINED))
        server.process.terminate()
        assert browser.run("window.drained") == ["last words", 1012]
    finally:
        browser.close()


def test_a_page_calls_procedures(serve, short_lived, tmp_path: Path) -> None:
    """By the client of the guide, word for word."""
    guide = (Path(__file__).parents[2] / "docs/guides/rpc.md").read_text()
    (client,) = re.findall(r"```js\n(async function call\(.*?)```", guide, re.S)
    server, script, pin = served(serve, short_lived, "session_calls_app")
    browser = Browser(tmp_path / "browser", f"--ignore-certificate-errors-spki-list={pin}")
    try:
        browser.open(f"https://127.0.0.1:{server.port}/events")
        assert browser.run(script(CALLS.replace("CLIENT", client))) == [3, 6, "Unknown", 4]
        told = browser.run(script(CANCELS.replace("CLIENT", client)))
        assert told == ["AbortError", "page is cancelled"]
    finally:
        browser.close()
