"""What is built for the tests: once a session, or not at all where there is no compiler."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import citius
import pytest

HERE = Path(__file__).parent


def compiler() -> str:
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is None:
        pytest.skip("no C compiler here")
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        pytest.skip("no Python.h here")
    return found


def build(source: Path, library: Path, *options: str) -> Path:
    """Compile with everything that a compiler can complain of."""
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{citius.get_include()}"]
    command = [compiler(), "-std=c11", "-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread", *includes,
               *options, str(source), "-o", str(library)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return library


@pytest.fixture(scope="session")
def misuse_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`misuse.c` as a library that is a Python module too."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    # usleep and PyGILState_Check are no part of C11.
    return build(
        HERE / "misuse.c", tmp_path_factory.mktemp("c") / f"misuse{suffix}", "-D_DEFAULT_SOURCE"
    )


@pytest.fixture(scope="session")
def misuse(misuse_path: Path) -> citius.compiled.Handlers:
    return citius.load_handlers(misuse_path)


@pytest.fixture(scope="session")
def misuse_module(misuse_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("misuse", misuse_path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def compile_c() -> Callable[..., Path]:
    return build
