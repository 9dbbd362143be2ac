"""What a result says of the checkout it was measured in."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from citius_lab.processes import environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit, in the place of the lab's own."""
    (tmp_path / "lab/published").mkdir(parents=True)
    (tmp_path / "lab/code.py").write_text("1\n")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example"]
    for words in (["init", "--quiet"], ["add", "."], [*who, "commit", "--quiet", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    monkeypatch.setattr(environment, "lab_root", lambda: tmp_path / "lab")
    monkeypatch.setattr(environment, "in_checkout", lambda: True)
    return tmp_path


def test_a_clean_checkout_is_its_commit(checkout: Path) -> None:
    assert len(environment.commit()) == 12
    # Kept results and notes are no code.
    (checkout / "lab/published/new.json").write_text("{}\n")
    (checkout / "notes.txt").write_text("mine\n")
    assert len(environment.commit()) == 12


@pytest.mark.parametrize("path", ["lab/code.py", "lab/mine.py", "crates/mine.rs"])
def test_code_that_no_commit_holds_is_said(checkout: Path, path: str) -> None:
    (checkout / path).parent.mkdir(exist_ok=True)
    (checkout / path).write_text("2\n")
    assert environment.commit().endswith(environment.LOCAL_CHANGES)
