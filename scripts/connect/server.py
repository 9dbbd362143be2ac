"""Starts `citius serve` as `connectconformance` asks, says where it is, and ends it with itself.

server.py TARGET [OPTION...]. The request and the response are messages of the suite
(`server_compat.proto`), each behind four bytes of its length.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from gen.connectrpc.conformance.v1.config_pb import HTTPVersion
from gen.connectrpc.conformance.v1.server_compat_pb import ServerCompatRequest, ServerCompatResponse


def asked() -> ServerCompatRequest:
    """What the suite wants."""
    size = int.from_bytes(sys.stdin.buffer.read(4), "big")
    return ServerCompatRequest.from_binary(sys.stdin.buffer.read(size))


def options(request: ServerCompatRequest, directory: Path) -> list[str]:
    """Those of the server."""
    if not request.use_tls:
        return []
    made = []
    creds = request.server_creds
    parts = {"--ssl-certfile": creds.cert, "--ssl-keyfile": creds.key}
    if request.client_tls_cert:
        parts["--ssl-ca-certs"] = request.client_tls_cert
        made = ["--ssl-cert-reqs", "required"]
    if request.http_version == HTTPVersion.HTTP_VERSION_3:
        made += ["--http", "1,2,3"]
    for number, (option, content) in enumerate(parts.items()):
        path = directory / f"{number}.pem"
        path.write_bytes(content)
        made += [option, str(path)]
    return made


def main() -> None:
    """Until the suite ends it."""
    target, *more = sys.argv[1:]
    request = asked()
    env = dict(os.environ)
    if request.message_receive_limit:
        env["READ_BYTES_MAX"] = str(request.message_receive_limit)
    with tempfile.TemporaryDirectory() as directory:
        server = subprocess.Popen(
            [sys.executable, "-m", "citius", "serve", target, "--port", "0", "--no-access-log", *more,
             *options(request, Path(directory))],
            stderr=subprocess.PIPE, text=True, env=env,
        )  # fmt: skip
        assert server.stderr is not None
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        for line in server.stderr:
            sys.stderr.write(line)
            if found := re.search(r"serves on https?://\S+:(\d+)", line):
                response = ServerCompatResponse(host="127.0.0.1", port=int(found[1]))
                if request.use_tls:
                    response.pem_cert = request.server_creds.cert
                content = response.to_binary()
                sys.stdout.buffer.write(len(content).to_bytes(4, "big") + content)
                sys.stdout.buffer.flush()
        server.wait()


if __name__ == "__main__":
    main()
