"""The build backend of the source distribution: maturin's, which cannot say in one line what is missing.

pip shows what a backend writes to standard error, and a traceback if the backend raises; so this one ends
with a line.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import maturin
from maturin import (  # noqa: F401  (the hooks that need no toolchain)
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parents[1]


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """Return nothing: what maturin would add downloads a toolchain."""
    _need_toolchain()
    return []


get_requires_for_build_editable = get_requires_for_build_wheel


def build_wheel(directory: str, config_settings: Any = None, metadata: str | None = None) -> str:
    """Build a wheel."""
    _need_toolchain()
    return maturin.build_wheel(directory, config_settings, metadata)


def build_editable(directory: str, config_settings: Any = None, metadata: str | None = None) -> str:
    """Build an editable wheel."""
    _need_toolchain()
    return maturin.build_editable(directory, config_settings, metadata)


def _need_toolchain() -> None:
    needed = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"][
        "rust-version"
    ]
    how = f"install Rust {needed} or later (https://rustup.rs), or a platform that has a wheel"
    for tool in ("cargo", "cc"):
        if shutil.which(tool) is None:
            sys.exit(f"citius: building from source needs {tool}, which is not in PATH: {how}")
    said = subprocess.run(
        ["cargo", "--version"], capture_output=True, text=True, check=False
    ).stdout
    found = said.split()[1] if len(said.split()) > 1 else "0"
    if _numbers(found) < _numbers(needed):
        sys.exit(f"citius: building from source needs Rust {needed}, found {found}: {how}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split(".")[:2])
