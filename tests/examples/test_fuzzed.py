"""Every example with an OpenAPI document under Schemathesis: it sends what that allows, and what it forbids.

It judges statuses, media types and bodies of responses by the document, and whether requests that it
forbids are refused.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from citius.scaffold import make
from rig import Server

EXAMPLES = Path(__file__).parents[2] / "examples"
APPLICATIONS = [str(path) for path in sorted(EXAMPLES.glob("*.py"))]
APPLICATIONS.append(str(EXAMPLES / "realworld/app.py"))


def document_of(target: str, folder: Path) -> Path:
    """The OpenAPI document of an application, in a file."""
    done = subprocess.run(
        [sys.executable, "-m", "citius", "openapi", target],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["paths"]
    file = folder / "openapi.json"
    file.write_text(done.stdout)
    return file


def fuzz(document: Path, server: Server, *options: str) -> None:
    """Fail with what Schemathesis reports if it finds a failure."""
    url = f"http://127.0.0.1:{server.port}"
    done = subprocess.run(
        [
            Path(sys.executable).parent / "schemathesis", "run", document, "--url", url, *options,
            "--max-examples", "3", "--seed", "1", "--no-color", "--phases", "examples,coverage,fuzzing",
        ],
        cwd=document.parent, capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr


def token_of(server: Server) -> str:
    """A user of the RealWorld example, so that what needs one is reached."""
    user: dict[str, Any] = {"email": "a@mail.test", "username": "ada", "password": "secret"}
    body = json.dumps({"user": user}).encode()
    fields = (
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
    )
    with server.connect() as peer:
        peer.send(f"POST /api/users HTTP/1.1\r\nhost: a\r\n{fields}\r\n".encode() + body)
        response = peer.read_to_end()
    return json.loads(response.partition(b"\r\n\r\n")[2])["user"]["token"]


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "path", APPLICATIONS, ids=lambda path: Path(path).relative_to(EXAMPLES).as_posix()
)
def test_a_fuzzer_finds_no_failure_in_an_example(path: str, tmp_path: Path) -> None:
    document = document_of(path, tmp_path)
    server = Server([path, "--port", "0", "--no-access-log"], {"PYTHONDEVMODE": ""}, tmp_path)
    try:
        server.wait_ready()
        options: tuple[str, ...] = ()
        if "realworld" in path:
            # The check of requests without a token would send this one, too; test_realworld.py has them.
            token = f"Authorization: Token {token_of(server)}"
            options = ("-H", token, "--exclude-checks", "ignored_auth")
        fuzz(document, server, *options)
        assert "Traceback" not in server.err
    finally:
        server.kill()


@pytest.mark.timeout(200)
def test_a_fuzzer_finds_no_failure_in_a_new_project(tmp_path: Path) -> None:
    project = tmp_path / "my-shop"
    make(project)
    document = document_of("my_shop.app:app", project)
    server = Server(["my_shop.app:app", "--port", "0"], {"PYTHONDEVMODE": ""}, project)
    try:
        fuzz(document, server.wait_ready())
        assert "Traceback" not in server.err
    finally:
        server.kill()
