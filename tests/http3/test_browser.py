"""A real browser on HTTP/3: pages, fetches both ways, events, streams that are given up."""

# pyright: basic

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from browser import Browser
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from rig import application, wait_for

TICKS = """
new Promise((resolve) => {
  const source = new EventSource("/ticks"), got = [];
  source.onmessage = ({ data }) => {
    got.push(data);
    if (got.length === 6) { source.close(); resolve(got); }
  };
})
"""
UPLOAD = """
(async () => {
  let left = 40;
  const body = new ReadableStream({ pull(controller) {
    if (left-- > 0) controller.enqueue(new Uint8Array(10000)); else controller.close();
  } });
  return await (await fetch("/count", { method: "POST", body, duplex: "half" })).text();
})()
"""
ABORT = """
(async () => {
  const controller = new AbortController();
  const answer = fetch("/slow", { signal: controller.signal });
  while (!(await (await fetch("/events")).json()).includes("slow began"));
  controller.abort();
  return await answer.then(() => "answered", (error) => error.name);
})()
"""


def public_key(certificate: str) -> str:
    """What Chromium knows a certificate by that it is to trust."""
    made = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    der = made.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


def test_a_browser(serve_h3, certificate, tmp_path: Path) -> None:
    server = serve_h3(app=application("browser_app"))
    origin = f"127.0.0.1:{server.port}"
    browser = Browser(
        tmp_path / "browser",
        f"--ignore-certificate-errors-spki-list={public_key(certificate[0])}",
        f"--origin-to-force-quic-on={origin}",
    )
    try:
        browser.open(f"https://{origin}/")
        assert browser.run("[document.title, loaded]") == ["Hello", 30]
        echoed = "(await (await fetch('/echo', {method: 'POST', body: 'x'.repeat(300000)})).text()).length"
        assert browser.run(f"(async () => {echoed})()") == 300_000
        assert browser.run(UPLOAD) == "400000"
        assert browser.run(TICKS) == [f"tick {n}" for n in range(1, 7)]
        assert browser.run(ABORT) == "AbortError"
        for end in ("ticks from 1 ended", "slow ended"):
            wait_for(
                lambda end=end: end in browser.run("fetch('/events').then((a) => a.json())"), end
            )
        kinds = "['navigation', 'resource'].flatMap((kind) => performance.getEntriesByType(kind))"
        told = f"{kinds}.map((one) => [new URL(one.name).pathname, one.nextHopProtocol])"
        spoken = {path: protocol for path, protocol in browser.run(told) if path != "/slow"}
        assert len(spoken) > 30
        assert set(spoken.values()) == {"h3"}
        assert "ERROR" not in server.err
    finally:
        browser.close()
