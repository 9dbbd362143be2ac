"""Names of files, tests and code in the documents for contributors exist in the repository."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
READING_GUIDE = ROOT / "docs/internals/reading-guide.md"
PAGES = [
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs/attacks.md",
    *sorted((ROOT / "docs/internals").glob("*.md")),
]
# test_claims.py looks for the settings of claims.md in the sources, the lab's included.
NAMES_CHECKED_APART = {"attacks.md", "claims.md"}
NAMES_OF_PYTHON = {"enter_task", "Future", "StopIteration"}


@functools.cache
def files() -> list[str]:
    """Every file of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    return done.stdout.splitlines()


@functools.cache
def words() -> set[str]:
    """Every word in the code of the server and in its tests."""
    found: set[str] = set()
    for name in files():
        if name.startswith(("crates/", "python/", "tests/")) and name.endswith((".rs", ".py")):
            found |= set(re.findall(r"\w+", (ROOT / name).read_text()))
    return found


def code_spans(page: Path) -> list[str]:
    return re.findall(r"`([^`\n]+)`", page.read_text())


def expand(text: str) -> list[str]:
    """`{a,b}.py` as the shell expands it."""
    braces = re.search(r"\{([^}]*)\}", text)
    if braces is None:
        return [text]
    before, after = text[: braces.start()], text[braces.end() :]
    return [one for part in braces[1].split(",") for one in expand(before + part + after)]


def exists(name: str) -> bool:
    """Whether a file or directory of that name exists; a crate stands for its sources, too."""
    sought = name.rstrip("/").removesuffix("/*.t")
    crate, _, rest = sought.partition("/")
    spellings = {sought, f"crates/{crate}/src/{rest}"}
    return any(f"/{one}/" in f"/{path}/" for path in files() for one in spellings)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_exist(page: Path) -> None:
    found = [name for span in code_spans(page) for name in expand(span)]
    named = [name for name in found if re.fullmatch(r"[\w./*-]+(?:\.(?:rs|py|md|t)|/)", name)]
    assert [name for name in named if not exists(name)] == []


def test_files_in_documents_for_users_exist() -> None:
    """There only paths of the repository count; others are the reader's own files."""
    ours = r"(?:crates|docs|examples|lab|python|scripts|tests|vectors)/[\w./-]+"
    pages = [ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "docs/platforms.md"]
    for folder in ("guides", "migration"):
        pages += (ROOT / "docs" / folder).glob("*.md")
    for page in pages:
        named = [span for span in code_spans(page) if re.fullmatch(ours, span)]
        assert [name for name in named if not exists(name)] == [], page


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name not in NAMES_CHECKED_APART], ids=str
)
def test_identifiers_exist(page: Path) -> None:
    """Words with an underscore, an inner capital or `::` are names in the code."""
    missing: list[str] = []
    for span in code_spans(page):
        if re.search(r"[ ./=-]", span):
            continue
        for word in re.findall(r"[A-Za-z_]\w+", span):
            is_name = "_" in word or re.search("[a-z][A-Z]", word) or "::" in span
            if is_name and word not in words() | NAMES_OF_PYTHON:
                missing.append(span)
    assert missing == []


def test_the_tests_of_attacks_exist() -> None:
    named: list[tuple[str, str]] = []
    default = ""
    for line in (ROOT / "docs/attacks.md").read_text().splitlines():
        if found := re.search(r"those of `([^`]+)`", line):
            default = found[1]
        if line.startswith("| ") and (cell := line.rsplit("|", 2)[1]):
            named += [(default, name) for name in re.findall(r"`([^`]+)`", cell)]
    assert len(named) > 50
    for file, name in named:
        assert "/" in name or name.endswith(".py") or name in (ROOT / file).read_text(), name


ROWS = [
    ((READING_GUIDE.parent / target).resolve(), name)
    for target, names in re.findall(
        r"^\|[^|]*\| \[[^\]]*\]\(([^)]*)\) \| ([^|]*) \|$", READING_GUIDE.read_text(), re.M
    )
    for name in re.findall(r"`([^`]*)`", names)
]


def body_of(code: str, owner: str) -> str:
    """The `impl` blocks of a Rust type, or the body of a Python class."""
    head = rf"^(?:impl\b[^{{]*\b{owner}\b[^{{]*\{{|class {owner}\b)"
    return "\n".join(re.findall(rf"{head}.*?(?=^(?![\s}})]))", code + "\n.", re.M | re.S))


def test_the_reading_guide_has_rows() -> None:
    assert len(ROWS) > 50


def definitions(path: Path, name: str) -> int:
    """How many a file has of a name."""
    code = path.read_text().partition("#[cfg(test)]")[0]
    owner, _, member = name.replace("::", ".").rpartition(".")
    kinds = r"(?:fn|struct|enum|trait|def|class|const)"
    if owner:
        found = re.findall(rf"\b{kinds} {member}\b", body_of(code, owner))
    else:
        found = re.findall(rf"^(?:\S+ )?{kinds} {member}\b", code, re.M)
    return len(found)


def test_a_name_of_the_reading_guide_is_defined_once_in_its_file() -> None:
    counts = {f"{path.name}: {name}": definitions(path, name) for path, name in ROWS}
    assert {place: count for place, count in counts.items() if count != 1} == {}
