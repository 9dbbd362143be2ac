"""Every object that serves again has its invariant and its test in docs/internals/reuse.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = [
    ROOT / "crates" / crate / "src" for crate in ("citius-base", "citius-clients", "citius-py")
]
REUSE = ROOT / "crates/citius-base/src/reuse"


def test_each_known_count_has_its_invariant_and_its_test() -> None:
    page = (ROOT / "docs/internals/reuse.md").read_text()
    rows = [
        line.split(" | ")
        for line in page.splitlines()
        if line.startswith("| `") and "`Known::`" not in line
    ]
    documented = [name for row in rows for name in re.findall(r"`([A-Z_]+)`", row[0])]
    known = re.findall(r"pub(?:\(crate\))? const ([A-Z_]+): Self", (REUSE / "mod.rs").read_text())
    assert sorted(documented) == sorted(known)
    tests = "".join(path.read_text() for path in ROOT.glob("tests/*/test_*.py"))
    for row in rows:
        names = re.findall(r"`(test_\w+)`", row[-1])
        assert names, row
        assert not [name for name in names if f"def {name}(" not in tests]


def test_references_are_counted_in_one_place() -> None:
    for path in (path for source in SOURCES for path in source.rglob("*.rs")):
        if REUSE not in path.parents:
            assert not re.search(r"Py_REFCNT|get_refcnt|tp_weaklistoffset", path.read_text()), path


def test_each_known_count_is_used() -> None:
    code = "".join(path.read_text() for source in SOURCES for path in source.rglob("*.rs"))
    for name in re.findall(r"const ([A-Z_]+): Self", (REUSE / "mod.rs").read_text()):
        assert f"Known::{name}" in code, name
