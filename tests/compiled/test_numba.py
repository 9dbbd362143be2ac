"""Typed Python functions with `compiled=True`: what they are given, what they may return, what is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from citius import App, ConfigError
from citius.testing import Client
from rig import application

numba = pytest.importorskip("numba", reason="numba is not installed")
import numpy as np  # noqa: E402

pytestmark = [
    # LLVM compiles for seconds, on a busy machine for minutes.
    pytest.mark.timeout(600),
    # numba's own, on newer interpreters
    pytest.mark.filterwarnings("default::DeprecationWarning"),
]

NAME = b"nexedi.com"


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    before = os.environ.get("XDG_CACHE_HOME")
    directory = tmp_path_factory.mktemp("cache")
    os.environ["XDG_CACHE_HOME"] = str(directory)
    yield directory
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@numba.njit
def is_close(byte: int, name: bytes) -> bool:
    for other in name:  # noqa: SIM110
        if abs(numba.int64(byte) - numba.int64(other)) <= 1:
            return True
    return False


def make_app() -> App:
    app = App()

    @app.get("/add/{a}/{b:int}", compiled=True)
    def add(a: int, b: int, c: int = 7):
        return a + b + c

    @app.get("/all/{name:path}", compiled=True)
    def everything(name: bytes, raw_path: bytes, raw_query: bytes, q: bytes = b"none"):
        return f"{len(name)} {len(raw_path)} {len(raw_query)} {len(q)} {q[0]}"

    @app.post("/sum", compiled=True, content_type="text/plain")
    def total(body: bytes, factor: float = 1.0, negate: bool = False):
        result = 0.0
        for byte in body:
            result += byte * factor
        return -result if negate else result

    @app.post("/upper", compiled=True)
    def upper(body: bytes):
        made = np.empty(len(body), np.uint8)
        for i in range(len(body)):
            byte = body[i]
            made[i] = byte - 32 if 97 <= byte <= 122 else byte
        return made

    @app.get("/close/{word}", compiled=True, pool=True)
    def close(word: bytes):
        found = 0
        for byte in word:
            found += is_close(byte, NAME)
        return found

    @app.get("/is-close", compiled=True)
    def one_close(byte: int):
        return is_close(byte, NAME)

    @app.get("/nothing", compiled=True)
    def nothing():
        pass

    @app.get("/status/{status}", compiled=True)
    def with_status(status: int):
        return status, "said so"

    @app.get("/wide", compiled=True)
    def wide():
        return "caf\u00e9 \u4e16 \U0001f600"

    @app.get("/latin", compiled=True)
    def latin():
        return "caf\u00e9"

    @app.get("/raise", compiled=True)
    def mishap(n: int = 0):
        if n == 0:
            raise ValueError("not zero")
        return 10 // n

    @app.get("/index/{word}", compiled=True)
    def index(word: bytes, at: int):
        return word[at]

    @app.post("/same", compiled=True)
    def same(body: bytes):
        return body

    return app


@pytest.fixture(scope="module", params=["compiled", "interpreted"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    with Client(
        make_app(), interpret_compiled=request.param == "interpreted", raise_errors=False
    ) as made:
        yield made


def test_integers(client: Client) -> None:
    answer = client.get("/add/1/2")
    assert (answer.status_code, answer.json()) == (200, 10)
    assert answer.headers["content-type"] == "application/json"
    assert client.get("/add/-5/2?c=-1").json() == -4
    assert client.get(f"/add/{2**63 - 1}/0?c=0").json() == 2**63 - 1


def test_what_does_not_fit_is_422_with_all_mistakes(client: Client) -> None:
    answer = client.get("/add/one/2?c=two")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    problem = answer.json()
    assert (problem["title"], problem["detail"]) == (
        "Unprocessable Content",
        "request validation failed",
    )
    places = [(mistake["in"], mistake["pointer"]) for mistake in problem["errors"]]
    assert places == [("path", "#/a"), ("query", "#/c")]
    missing = client.get("/index/abc").json()["errors"]
    assert missing == [{"in": "query", "pointer": "#/at", "detail": "missing"}]
    assert client.get("/add/1/no-number").status_code == 404  # the route takes integers only


def test_bytes(client: Client) -> None:
    assert client.get("/all/a%20b?q=%C3%A9+").text == "3 10 9 3 195"
    assert client.get("/all/").text == "0 5 0 4 110"


def test_floats_bools_and_the_body(client: Client) -> None:
    assert client.post("/sum", content=b"\x01\x02\x03").text == "6.0"
    answer = client.post("/sum?factor=0.5&negate=true", content=b"\x01\x02\x03")
    assert (answer.text, answer.headers["content-type"]) == ("-3.0", "text/plain")
    assert client.post("/sum?negate=maybe", content=b"").status_code == 422
    assert client.get("/is-close?byte=100").text == "true"
    assert client.get("/is-close?byte=0").text == "false"


def test_arrays_texts_and_nothing(client: Client) -> None:
    answer = client.post("/upper", content=b"abc \xff")
    assert (answer.content, answer.headers["content-type"]) == (
        b"ABC \xff", "application/octet-stream",
    )  # fmt: skip
    assert client.post("/upper", content=b"").content == b""
    assert client.post("/same", content=b"x" * 100_000).content == b"x" * 100_000
    assert client.get("/wide").text == "caf\u00e9 \u4e16 \U0001f600"
    assert client.get("/latin").text == "caf\u00e9"
    assert client.get("/nothing").status_code == 204


def test_a_status_beside_the_body(client: Client) -> None:
    answer = client.get("/status/404")
    assert (answer.status_code, answer.text) == (404, "said so")
    assert client.get("/status/42").status_code == 500


def test_exceptions_are_500(client: Client) -> None:
    assert client.get("/raise").status_code == 500
    assert client.get("/raise?n=5").json() == 2


def test_indices_are_checked(client: Client) -> None:
    assert client.get("/index/abc?at=2").json() == 99
    assert client.get("/index/abc?at=3").status_code == 500
    assert client.get("/index/abc?at=1000000000").status_code == 500


def test_helpers_and_the_pool(client: Client) -> None:
    expected = sum(any(abs(byte - other) <= 1 for other in NAME) for byte in b"hello")
    assert client.get("/close/hello").json() == expected


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    app = App()

    @app.get("/", compiled=True)
    def double(n: int):
        return n * 2

    assert double(4) == 8


def refused(function: Any, pattern: str = "/{a}") -> str:
    app = App()
    app.get(pattern, compiled=True)(function)
    with pytest.raises(ConfigError) as raised:
        Client(app)
    return str(raised.value)


def undecorated(n: int) -> int:
    return n


def test_statements_that_numba_does_not_know_are_refused_with_their_line() -> None:
    def imports(a: int):
        import os

        return a + os.getpid()

    line = imports.__code__.co_firstlineno + 1
    assert f"test_numba.py:{line}: import os" in refused(imports)


def test_what_numba_cannot_type_is_refused_with_its_line() -> None:
    def calls_plain(a: int):
        b = a + 1
        return undecorated(b)

    message = refused(calls_plain)
    line = calls_plain.__code__.co_firstlineno + 2
    assert f"{__file__}:{line}: return undecorated(b)" in message
    assert "decorate undecorated with @numba.njit" in message

    def changes_type(a: int):
        result = "text" if a > 3 else a
        return result

    message = refused(changes_type)
    assert "give the variable one type" in message
    assert "changes_type" in message

    def uses_json(a: int):
        return {"a": {"b": a}}

    message = refused(uses_json)
    assert "uses_json" in message
    assert "expected int, float, bool, str" in message

    def opens(a: int):
        return open("/etc/hostname").read()

    message = refused(opens)
    assert "opens" in message
    assert re.search(r"test_numba.py:\d+: return open", message)


def test_parameters_need_types_that_native_code_has() -> None:
    def untyped(a):
        return 1

    assert "the parameter a of" in refused(untyped)
    assert "no type" in refused(untyped)

    def text(a: str):
        return 1

    assert "takes bytes, int, float and bool" in refused(text)

    def several(*a: int):
        return 1

    assert "name their parameters" in refused(several)

    def default(a: int, b: int = 2.5):  # type: ignore[assignment]
        return 1

    assert "is 2.5, which is not int" in refused(default)

    def part(body: int):
        return 1

    assert "the body of a request is bytes" in refused(part, "/")


SCRIPT = application("kept_code_app").read_text()


def test_native_code_is_kept_on_disk_and_made_anew_after_a_change(tmp_path: Path) -> None:
    def run(factor: int) -> list[str]:
        (tmp_path / "main.py").write_text(SCRIPT.replace("FACTOR = 5", f"FACTOR = {factor}"))
        done = subprocess.run(
            [sys.executable, "main.py", str(tmp_path / "cache")], cwd=tmp_path, text=True,
            capture_output=True, env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")

    assert run(5)[:2] == ["15", "['.nbc', '.nbi', '.py']"]
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")}
    assert run(5)[0] == "15"
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb?")} == kept
    assert run(6)[0] == "18"
    assert len([*tmp_path.rglob("*.nbi")]) == 2
    for path in tmp_path.rglob("*.nbc"):
        path.write_bytes(path.read_bytes()[:100])
    assert run(6)[0] == "18"


def test_without_numba_the_start_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('No module named numba')")
    program = (
        "from citius import App\n"
        "from citius.testing import Client\n"
        "app = App()\n"
        "@app.get('/', compiled=True)\n"
        "def handler(n: int): return n\n"
        "print(Client(app, interpret_compiled=True).get('/?n=3').text)\n"
        "Client(app)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, text=True, capture_output=True
    )
    assert done.stdout == "3\n"
    assert "install citius[numba]" in done.stderr
