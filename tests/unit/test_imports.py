"""Targets: what is found, and what the message says when it is not."""

from __future__ import annotations

import itertools
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from citius import App
from citius.errors import AppImportError
from citius.serving.interfaces.imports import import_app
from citius.settings.config import Config

_numbers = itertools.count()

ASGI = "class X:\n  async def __call__(self, scope, receive, send): ...\n"
ASGI += "X.__module__, X.__qualname__ = 'other', 'Asgi'\nx = X()"
"""A module that has imported the class of a framework."""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a module with a name of its own; gives that name."""
    monkeypatch.setattr(sys, "path", sys.path[:])

    def write(text: str) -> str:
        name = f"imported_{next(_numbers)}"
        (tmp_path / f"{name}.py").write_text("from citius import App\n" + text)
        return name

    return write


@pytest.mark.parametrize(
    ("text", "attribute", "factory"),
    [
        ("app = App()", ":app", False),
        ("app = App()", "", False),
        ("application = App()", "", False),
        ("api = App()", "", False),
        ("shop = App()", "", False),
        ("class a:\n  b = App()", ":a.b", False),
        ("def create_app(): return App()", "", False),
        ("def create_app(): return App()", ":create_app", True),
        ("def make(debug=False): return App()", ":make", True),
        ("def f(): return App()", ":f", False),
        ("app = App()", ":app", True),
    ],
)
def test_found(tmp_path: Path, module, text: str, attribute: str, factory: bool) -> None:
    name = module(text)
    found = import_app(name + attribute, Config(app_dir=str(tmp_path), factory=factory))
    assert isinstance(found, App)
    by_path = import_app(f"{name}.py{attribute}", Config(app_dir=str(tmp_path), factory=factory))
    assert isinstance(by_path, App)


def test_a_file_in_a_package_is_imported_as_part_of_it(tmp_path: Path, module) -> None:
    package = tmp_path / f"package_{next(_numbers)}"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "routes.py").write_text("from citius import App\napp = App()\n")
    (package / "main.py").write_text("from .routes import app\n")
    assert isinstance(import_app(str(package / "main.py"), Config()), App)


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a = App()\nb = App()", "{}", r"applications in it: a, b; say which one it is: {}:NAME"),
        ("a = App()", "{}:b", r"has no attribute 'b'; applications in it: a"),
        ("x = 1", "{}", r"there is no application in it"),
        ("x = App()", "{}:App", r"{}:App is the class citius.*, and no application; applications in it: x"),
        (ASGI, "{}:X", r"{}:X is the class other.Asgi, and no application; applications in it: x"),
        (ASGI, "{}:y", r"has no attribute 'y'; applications in it: x"),
        ("", ".", r"is a directory without a manage.py; name a file in it, one of imported_"),
        ("", "./", r"is a directory without a manage.py"),
        ("", ".{}:app", r"'.{}' is no name of a module: it begins with a dot"),
        ("x = 1", "{}:x", r"{}:x: expected an application .*, got builtins.int"),
        ("def create_app(): return 1", "{}", r"{}:create_app: expected an application .*, got builtins"),
        ("def create_app(x): return 1", "{}", r"cannot be called without arguments: missing .*'x'"),
        ("", "no_such_module:app", r"no module 'no_such_module' in .*modules there: imported_"),
        ("", "no/such/file.py", r"there is no file .*/no/such/file.py"),
        ("", "{}.py.txt", r"no module"),
        ("", "", r"expected module:attribute or a file, got ''"),
        ("", ":app", r"expected module:attribute or a file, got ':app'"),
    ],
)  # fmt: skip
def test_not_found(tmp_path: Path, module, text: str, target: str, message: str) -> None:
    name = module(text)
    with pytest.raises(AppImportError, match=message.replace("{}", name)):
        import_app(target.replace("{}", name), Config(app_dir=str(tmp_path)))


def test_what_the_module_misses_is_its_own_problem(tmp_path: Path, module) -> None:
    name = module("import no_such_dependency")
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        import_app(name, Config(app_dir=str(tmp_path)))


def test_a_file_that_cannot_be_a_module(tmp_path: Path) -> None:
    (tmp_path / "my-app.py").write_text("")
    with pytest.raises(AppImportError, match="my-app is no module name"):
        import_app("my-app.py", Config(app_dir=str(tmp_path)))


def test_a_sub_interpreter_is_refused() -> None:
    """Objects that are reused between requests belong to one interpreter."""
    program = textwrap.dedent("""
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            import _interpreters as interpreters
        import citius._core

        code = '''
        try:
            import citius._core
        except ImportError as error:
            assert "sub-interpreter" in str(error) or "subinterpreters" in str(error), error
        else:
            raise AssertionError("it was imported")
        '''
        error = interpreters.run_string(interpreters.create(), __import__("textwrap").dedent(code))
        assert error is None, error
    """)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("call", "seen"),
    [
        (":create_app()", "() {}"), (":create_app('a:b', 1)", "('a:b', 1) {}"),
        (":create_app(debug=True, names=['x'])", "() {'debug': True, 'names': ['x']}"),
        (":factories.create_app(None)", "(None,) {}"),
    ],
)  # fmt: skip
def test_a_factory_is_called_with_literals(tmp_path: Path, module, call: str, seen: str) -> None:
    """Servers D13: the form of Flask's documentation for gunicorn."""
    name = module(
        "def create_app(*arguments, **more):\n"
        "    app = App()\n    app.state.seen = f'{arguments} {more}'\n    return app\n"
        "class factories: create_app = create_app\n"
    )
    for target in (name, f"{name}.py"):
        found = import_app(target + call, Config(app_dir=str(tmp_path)))
        assert isinstance(found, App)
        assert found.state.seen == seen


@pytest.mark.parametrize("call", [":f(x)", ":f(", ":f(**{})", ":f()()", ":f(open('x'))", ":(1)"])
def test_other_calls_are_refused(tmp_path: Path, module, call: str) -> None:
    name = module("def f(*a): return lambda: App()\nx = 1")
    with pytest.raises(AppImportError, match="expected module:factory|has no attribute"):
        import_app(name + call, Config(app_dir=str(tmp_path)))


def test_a_directory_that_is_not_there() -> None:
    """Newcomer B8."""
    with pytest.raises(AppImportError, match="--app-dir: there is no directory nowhere"):
        import_app("app", Config(app_dir="nowhere"))
