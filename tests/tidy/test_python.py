"""The Python side: what a worker imports, how long files get, what the public face promises."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import citius
import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/citius"
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text())
    for path in sorted(PACKAGE.rglob("*.py"))
}
LINES_MAX = 600
HOST_LINES_MAX = 120

# What a worker pays for with memory although a plain service never uses it.
NEVER = {"rich", "email", "http", "unittest", "pydoc", "tomllib", "watchfiles", "multiprocessing",
         "msgspec", "citius.web.binding.forms", "citius.testing", "citius.serving.supervisor", "decimal",
         "xml", "encodings.idna", "difflib", "click", "citius.cli", "citius.settings.compat", "secrets",
         "random", "hashlib", "ipaddress", "citius.databases", "citius.http", "citius.mcp", "citius.pg",
         "citius.redis",
         "citius.sqlite",
         "sqlite3"}  # fmt: skip
NEVER_WITHOUT_A_LOOP = {
    "asyncio",
    "ssl",
    "uvloop",
    "citius.web.execution.thread_pool",
    "concurrent",
}


def imported_by_a_worker(loop: str, tmp_path: Path) -> set[str]:
    """The modules in a worker that has answered a request."""
    (tmp_path / "main.py").write_text(
        "import os, sys\n"
        "from citius import App\n"
        "app = App()\n"
        "@app.get('/')\n"
        "def hello():\n"
        "    return '\\n'.join(sys.modules)\n"
    )
    from rig import Server

    server = Server(["main.py", "--port", "0", "--loop", loop], {"PYTHONDEVMODE": ""}, tmp_path)
    try:
        return set(server.wait_ready().get("/").body.decode().split())
    finally:
        server.kill()


@pytest.mark.parametrize(
    ("loop", "never"),
    [
        ("uvloop", NEVER),
        ("auto", NEVER | NEVER_WITHOUT_A_LOOP),
        ("none", NEVER | NEVER_WITHOUT_A_LOOP),
    ],
)
def test_a_worker_holds_only_what_it_needs(loop: str, never: set[str], tmp_path: Path) -> None:
    found = imported_by_a_worker(loop, tmp_path)
    assert "citius._core" in found
    assert found & never == set()


def test_modules_have_a_contract_on_top() -> None:
    assert not [name for name, tree in TREES.items() if not ast.get_docstring(tree)]


def test_modules_are_short() -> None:
    """A longer one says in its doc that it is one thing."""
    long = [
        f"{name}: {lines} lines"
        for name, tree in TREES.items()
        if (lines := (PACKAGE / name).read_text().count("\n")) > LINES_MAX
        and "one thing" not in (ast.get_docstring(tree) or "")
    ]
    assert not long, f"more than {LINES_MAX} lines; divide it, or say in the module doc why not"
    hosts = PACKAGE.glob("**/hosts/*.py")
    assert not [path.name for path in hosts if path.read_text().count("\n") >= HOST_LINES_MAX]


def test_modules_have_no_import_side_effects() -> None:
    """Statements on module level define things; they do not do things."""
    allowed = (
        ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef,
        ast.Assign, ast.AnnAssign, ast.If,
    )  # fmt: skip
    found: list[str] = []
    for name, tree in TREES.items():
        if name.endswith("__main__.py"):
            continue
        for node in tree.body:
            is_doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_registration = name.endswith("cli.py") and isinstance(node, ast.Expr)
            if not (isinstance(node, allowed) or is_doc or is_registration):
                found.append(f"{name}:{node.lineno}: {ast.unparse(node)[:80]}")
    assert not found


def test_every_public_name_exists_once() -> None:
    assert len(set(citius.__all__)) == len(citius.__all__)
    for name in citius.__all__:
        assert getattr(citius, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        citius.nothing
    assert set(citius.__all__) <= set(dir(citius))


def test_the_annotations_of_lazy_names_are_their_homes() -> None:
    """A type checker reads the imports under TYPE_CHECKING, the interpreter `__getattr__`."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    for node in block.body:
        if isinstance(node, ast.ImportFrom) and node.module != "typing":
            for alias in node.names:
                home = __import__(str(node.module), fromlist=[alias.name])
                assert getattr(home, alias.name) is getattr(citius, alias.name), alias.name


def test_the_version_is_said_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from importlib.metadata import version; print(version('citius'))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == citius.__version__


def test_a_folder_of_the_framework_can_be_read_at_a_glance() -> None:
    """At most 12 entries: with more, a newcomer looks for a line's place by opening files."""
    folders = [PACKAGE / "web", *(PACKAGE / "web").rglob("*/")]
    entries = {
        folder: [one for one in folder.iterdir() if one.name not in {"__init__.py", "__pycache__"}]
        for folder in folders
        if folder.name != "__pycache__"
    }
    assert not [f"{folder}: {len(own)}" for folder, own in entries.items() if len(own) > 12]


def test_scripts_are_named_in_one_way() -> None:
    """Programs in Python with `_` and `.py`, those in shell with `-` and no suffix."""
    folders = (PACKAGE.parents[1] / "scripts", PACKAGE.parents[1] / "lab" / "costs")
    scripts = [path for folder in folders for path in folder.iterdir() if path.is_file()]
    wrong = [
        path.name
        for path in scripts
        if not re.fullmatch(r"[a-z0-9_]+\.(py|json)|[a-z0-9-]+|README\.md", path.name)
    ]
    assert not wrong
