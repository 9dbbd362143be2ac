"""The library of handlers that wait, built once a session, and servers with them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import citius
import pytest
from rig import Server

HERE = Path(__file__).parent


def _compiled_conftest() -> Any:
    """The builder of tests/compiled, which is no package."""
    path = HERE.parent / "compiled/conftest.py"
    spec = importlib.util.spec_from_file_location("compiled_conftest", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("compiled_conftest", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def build_c() -> Callable[..., Path]:
    return _compiled_conftest().build


@pytest.fixture(scope="session")
def library_path(build_c: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("c") / "goroutines.so"
    # The recursions are meant.
    return build_c(HERE / "goroutines.c", library, "-Wno-infinite-recursion")


@pytest.fixture(scope="session")
def library(library_path: Path) -> citius.compiled.Handlers:
    return citius.load_handlers(library_path)


@pytest.fixture
def serve_library(library_path: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Serves handlers of the library, each below its name, and `/alive`."""
    servers: list[Server] = []

    def start(*options: str, pool: bool = False, more: str = "", **environment: str) -> Server:
        (tmp_path / "main.py").write_text(
            "from citius import App, load_handlers\n"
            "from citius.go import chan, go, share\n"
            "app = App()\n"
            f"handlers = load_handlers({str(library_path)!r})\n"
            "@app.get('/alive')\n"
            "def alive(): return 'yes'\n"
            "def add(name, path=None, method=app.get, **how):\n"
            f"    method(path or '/' + name, compiled=handlers[name], serial=True, pool={pool}, **how)\n"
            f"{more}\n"
        )
        made = Server(["main.py", "--port", "0", *options], environment, tmp_path).wait_ready()
        servers.append(made)
        return made

    yield start
    for server in servers:
        server.kill()
