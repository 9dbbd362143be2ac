"""The lab's own files: in a checkout beside the package, within it when installed from a wheel."""

from __future__ import annotations

import fnmatch
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from citius_lab import paths
from citius_lab.commands import run as measure

LAB = Path(__file__).parents[1]


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package's modules with the definitions where the wheel has them."""
    site = tmp_path / "site"
    shutil.copytree(
        LAB / "citius_lab",
        site / "citius_lab",
        ignore=shutil.ignore_patterns("__pycache__", "bin"),
    )
    mapping = tomllib.loads((LAB / "pyproject.toml").read_text())["tool"]["setuptools"]
    for package, folder in mapping["package-dir"].items():
        if package != "citius_lab":
            (site / package.replace(".", "/")).parent.mkdir(exist_ok=True)
            (site / package.replace(".", "/")).symlink_to(LAB / folder)
    return site


def test_the_checkout_keeps_what_it_builds() -> None:
    assert paths.in_checkout()
    assert paths.lab_root() == LAB
    assert paths.default_build_root() == LAB / ".build"


def test_an_installed_lab_needs_no_checkout(installed: Path, tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(installed)!r})\n"
        "from citius_lab import paths\n"
        "from citius_lab.bench import installations\n"
        "from citius_lab.commands import run\n"
        "from citius_lab.definitions import contestants, experiments, workloads\n"
        "print(paths.in_checkout(), paths.default_build_root())\n"
        "print(*contestants.load([paths.lab_root() / 'contestants']))\n"
        "print(run.default_folder('quick').parent)\n"
        "print((paths.lab_root() / 'servers' / 'uvicorn' / 'requirements.txt').is_file())\n"
    )
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    where, names, results, servers = done.stdout.splitlines()
    assert where == f"False {tmp_path / 'cache' / 'citius-lab'}"
    assert {"citius", "uvicorn", "go-fasthttp"} <= set(names.split())
    assert results == "citius-lab"
    assert servers == "True"


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=folder,
        env={"XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["answer"], "the page is that of a checkout of Citius"),
        (["answer", "--measure"], "the page is that of a checkout of Citius"),
        (["keep", "."], "lab/published is that of a checkout of Citius"),
        (["history"], "that of a checkout of Citius"),
    ],
)
def test_an_installed_lab_says_what_only_a_checkout_can_do(
    installed: Path, tmp_path: Path, words: list[str], said: str
) -> None:
    """`citius lab answer` ended with a traceback, and `keep` wrote into the installed package."""
    program = (
        f"import sys; sys.path.insert(0, {str(installed)!r})\n"
        f"from citius_lab.cli import lab; lab({words!r})\n"
    )
    done = run(program, tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_results_go_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert measure.default_folder("quick").parent == Path("citius-lab")
    (tmp_path / "lab/citius_lab").mkdir(parents=True)
    assert measure.default_folder("quick").parent == Path("lab/results")


def test_every_file_of_the_definitions_is_part_of_the_package() -> None:
    """The tables of a workload were missing where the lab was installed from a wheel."""
    root = paths.lab_root()
    table = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["setuptools"]
    own = [name for name in table["packages"] if name.startswith("citius_lab.data.")]
    for name in own:
        folder = root / table["package-dir"][name]
        shown = subprocess.run(
            ["git", "ls-files"], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.split()
        patterns = table["package-data"][name]
        for path in shown:
            part = any(fnmatch.fnmatch(path, pattern.replace("**/", "")) for pattern in patterns)
            assert part or path in ("README.md", "levels.py"), f"{name}: {path}"


def test_every_package_of_the_sources_is_part_of_the_distribution() -> None:
    table = tomllib.loads((LAB / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent.relative_to(LAB) for path in (LAB / "citius_lab").rglob("*.py")}
    sources = {".".join(folder.parts) for folder in folders}
    assert sources == {
        name for name in table["packages"] if not name.startswith("citius_lab.data.")
    }


def test_the_method_names_every_experiment() -> None:
    """Seven experiments were missing in its table."""
    method = (LAB / "METHOD.md").read_text(encoding="utf-8")
    names = {path.stem for path in (LAB / "experiments").glob("*.toml")}
    assert names == {name for name in names if f"| `{name}` |" in method}
