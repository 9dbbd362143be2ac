"""What `citius lab history` shows: the costs that commits kept, from a repository of the test's own."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from citius_lab.commands import history
from citius_lab.errors import LabError
from citius_lab.paths import lab_root

if TYPE_CHECKING:
    from pathlib import Path


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(root), *who, *words], check=True, capture_output=True)


def keep(root: Path, place: str, count: int) -> None:
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    kinds = {"native": {"total": count, "extension": 1}}
    path.write_text(json.dumps({"python": "3.11.7", "kinds": kinds}))


@pytest.fixture(params=history.COUNTS)
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    git(tmp_path, "init", "-q")
    keep(tmp_path, request.param, 4000)
    own = tmp_path / "lab" / "published" / "falcon-go"
    own.mkdir(parents=True, exist_ok=True)
    for path in (lab_root() / "published" / "falcon-go").iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "both kept")
    (tmp_path / "readme").write_text("no cost")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "words")
    keep(tmp_path, request.param, 3900)
    git(tmp_path, "commit", "-qam", "faster")
    return tmp_path


def test_each_commit_that_kept_a_cost_is_shown_with_it(root: Path) -> None:
    faster, both = history.history(root, "citius", ("hello",), 10)
    assert (faster.subject, both.subject) == ("faster", "both kept")
    assert (faster.instructions, both.instructions) == ({"native": 3900}, {"native": 4000})
    assert faster.cpu == {}
    assert "falcon-go/longer hello" in both.cpu
    assert float(both.cpu["falcon-go/longer hello"].rstrip("?")) > 0


def test_results_that_a_commit_removed_are_no_row(root: Path) -> None:
    git(root, "rm", "-rq", "lab/published")
    git(root, "commit", "-qm", "gone")
    assert [one.subject for one in history.history(root, "citius", ("hello",), 10)] == [
        "faster",
        "both kept",
    ]


def test_what_is_no_repository_is_said(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="not a git repository"):
        history.history(tmp_path, "citius", ("hello",), 10)
