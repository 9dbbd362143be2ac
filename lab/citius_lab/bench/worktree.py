"""Another commit of a repository, in a temporary worktree: ``citius lab bench --against git:REF``.

In a checkout of Citius the server itself is built from that commit, into ``lab/.build/git/SHA`` (and
not again); in any other repository the application's code is that commit's.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from citius_lab.definitions.contestants import run_read
from citius_lab.errors import BuildError
from citius_lab.paths import default_build_root

if TYPE_CHECKING:
    from collections.abc import Generator


@contextlib.contextmanager
def of(ref: str, folder: Path) -> Generator[tuple[str, Path]]:
    """Check out ``ref`` of the repository around ``folder``; yield its hash and ``folder`` there.

    Raises:
        BuildError: There is no repository, or no such commit.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel"))
    commit = _git(folder, "rev-parse", "--verify", f"{ref}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="citius-lab-git-") as place:
        tree = Path(place, "tree")
        _git(folder, "worktree", "add", "--detach", "--quiet", str(tree), commit)
        try:
            yield commit, tree / folder.resolve().relative_to(top)
        finally:
            _git(folder, "worktree", "remove", "--force", str(tree))


def is_citius(folder: Path) -> bool:
    """Tell whether a folder belongs to a checkout of Citius."""
    return any((parent / "crates" / "citius-py").is_dir() for parent in [folder, *folder.parents])


def build_citius(commit: str, folder: Path) -> Path:
    """Build the Citius of a worktree; return the folder to put on PYTHONPATH.

    Raises:
        BuildError: It does not build.
    """
    top = Path(_git(folder, "rev-parse", "--show-toplevel"))
    root = default_build_root() / "git"
    site = root / commit[:12]
    if (site / "stamp").exists():
        return site
    with tempfile.TemporaryDirectory(prefix="citius-lab-wheel-") as wheels:
        # Commits before 0.2 want the load generator in the wheel; an empty file is enough to build it.
        binary = top / "python" / "citius" / "bin" / "citius-load"
        binary.parent.mkdir(parents=True, exist_ok=True)
        binary.touch(exist_ok=True)
        _run(
            [sys.executable, "-m", "maturin", "build", "--release", "--quiet", "--out", wheels,
             "--interpreter", sys.executable, "--target-dir", str(root / "target")],
            top,
        )  # fmt: skip
        (wheel,) = Path(wheels).glob("*.whl")
        _run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade",
             "--target", str(site), str(wheel)],
            top,
        )  # fmt: skip
    (site / "stamp").touch()
    return site


def _git(folder: Path, *words: str) -> str:
    return _run(["git", "-C", str(folder), *words], folder)


def _run(command: list[str], folder: Path) -> str:
    try:
        code, said, complained = run_read(command, cwd=folder)
    except OSError as error:
        raise BuildError(f"{command[0]} does not start: {error.strerror}") from error
    if code != 0:
        tail = "\n".join((complained or said).strip().splitlines()[-8:])
        raise BuildError(f"{' '.join(command[:6])} … ended with code {code}:\n{tail}")
    return said.strip()
