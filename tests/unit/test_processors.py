"""Processors: the affinity and the quotas of control groups of both versions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from citius.process.processors import processors
from citius.settings.config import OPTIONS
from citius.settings.loading import load


@pytest.fixture(autouse=True)
def eight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)))


def system(root: Path, membership: str, **files: str) -> str:
    """A ``/proc`` and a ``/sys`` with these files; ``__`` in a name is a slash."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name.replace("__", "/").replace("_max", ".max")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(root)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8),
        ({"a__b__cpu_max": "max 100000\n"}, 8),
        ({"a__b__cpu_max": "250000 100000\n"}, 3),
        ({"a__b__cpu_max": "10000 100000\n"}, 1),
        ({"a__cpu_max": "200000 100000\n", "a__b__cpu_max": "400000 100000\n"}, 2),
        ({"cpu_max": "100000 100000\n"}, 1),
        ({"a__b__cpu_max": "1600000 100000\n"}, 8),
        ({"a__b__cpu_max": "nonsense\n"}, 8),
        ({"a__b__cpu_max": "100000 0\n"}, 8),
    ],
)
def test_version_2(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert processors(system(tmp_path, "0::/a/b\n", **files)) == expected


def test_version_1(tmp_path: Path) -> None:
    root = system(tmp_path, "7:memory:/x\n4:cpu,cpuacct:/a\n")
    directory = tmp_path / "sys/fs/cgroup/cpu/a"
    directory.mkdir(parents=True)
    (directory / "cpu.cfs_quota_us").write_text("150000\n")
    (directory / "cpu.cfs_period_us").write_text("100000\n")
    assert processors(root) == 2
    (directory / "cpu.cfs_quota_us").write_text("-1\n")
    assert processors(root) == 8


def test_without_control_groups(tmp_path: Path) -> None:
    assert processors(str(tmp_path)) == 8


def test_auto_is_understood_by_every_source(tmp_path: Path) -> None:
    expected = processors()
    assert OPTIONS["workers"].parse("auto", "--workers") == expected
    assert load({}, {"WEB_CONCURRENCY": "auto"}).workers == expected
    file = tmp_path / "citius.toml"
    file.write_text('workers = "auto"\n')
    assert load({}, {}, str(file)).workers == expected
    file.write_text('port = "auto"\n')
    with pytest.raises(ValueError, match="port: expected a whole number"):
        load({}, {}, str(file))
    with pytest.raises(ValueError, match="at least 1|from 1 to 1024, or auto"):
        OPTIONS["workers"].parse("many", "--workers")
