from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from citius_lab.definitions.workloads import contract

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def as_the_lab_has_them() -> Iterator[None]:
    """The workloads of the lab alone: a command adds those of its arguments for its process."""
    yield
    contract.cache_clear()


@pytest.fixture(autouse=True)
def own_lock(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with the fake load generator disturb no measurement, nor each other's."""
    monkeypatch.setenv("CITIUS_LAB_LOCK", str(tmp_path_factory.getbasetemp() / "measuring.lock"))


@pytest.fixture
def fake_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the fake load generator in the real one's place."""
    command = tmp_path / "fake-load"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{HERE}/fake_load.py" "$@"\n')
    command.chmod(0o755)
    monkeypatch.setenv("CITIUS_LOAD", str(command))
    return command


@pytest.fixture
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter windows and warm-ups than a measurement may have: what a run does is the same."""
    for name, value in (
        ("run.WATCH_RUN_S", 0.2),
        ("run.WATCH_MIN_S", 0.4),
        ("run.WATCH_MAX_S", 0.4),
        ("run.WARMUP_S", 0.02),
        ("history.WARM_MIN_S", 0.02),
        ("history.WARM_MAX_S", 0.1),
        ("budget.WINDOW_MIN_S", 0.08),
    ):
        monkeypatch.setattr(f"citius_lab.measure.{name}", value)


@pytest.fixture
def brief(short_windows: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short windows, and one round where a measurement has at least three."""
    for name in ("plan.ROUNDS_MIN", "plan.ROUNDS_MAX", "run.ROUNDS_MIN", "history.ROUNDS_MIN"):
        monkeypatch.setattr(f"citius_lab.measure.{name}", 1)


@pytest.fixture
def all_cpus() -> object:
    """Give the process its CPUs back: a run narrows them."""
    cpus = os.sched_getaffinity(0)
    yield cpus
    os.sched_setaffinity(0, cpus)
