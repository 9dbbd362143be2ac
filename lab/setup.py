"""Puts the load generator into the wheel; pyproject.toml has everything else.

The generator is built by cargo from `load/`, or taken from the file that CITIUS_LAB_LOAD names (cross
builds). It does not depend on Python, so one wheel serves every Python of a platform.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

LOAD = Path(__file__).parent / "load"


def generator() -> Path:
    """Return the load generator, built if it was not given."""
    if given := os.environ.get("CITIUS_LAB_LOAD"):
        return Path(given)
    if shutil.which("cargo") is None:
        sys.exit(
            "citius-lab: building from source needs cargo, the Rust toolchain (https://rustup.rs)"
        )
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--manifest-path",
        str(LOAD / "Cargo.toml"),
    ]
    if done := subprocess.run(command, check=False).returncode:
        sys.exit(f"citius-lab: {' '.join(command)} ended with code {done}")
    target = Path(os.environ.get("CARGO_TARGET_DIR", LOAD / "target"))
    return target / "release" / "citius-load"


class BuildWithGenerator(build_py):
    """Copies the generator beside the modules, unless the install is editable."""

    def run(self) -> None:
        """Build."""
        super().run()
        if not self.editable_mode:
            folder = Path(self.build_lib, "citius_lab", "bin")
            folder.mkdir(parents=True, exist_ok=True)
            target = folder / "citius-load"
            shutil.copyfile(generator(), target)
            target.chmod(0o755)


class PlatformWheel(bdist_wheel):
    """A wheel for any Python 3 of one platform."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag."""
        return "py3", "none", super().get_tag()[2]


class WithBinary(Distribution):
    """A distribution that holds machine code, though no extension module."""

    def has_ext_modules(self) -> bool:
        """Say so, which puts the package into `platlib` and names the platform."""
        return True


setup(cmdclass={"build_py": BuildWithGenerator, "bdist_wheel": PlatformWheel}, distclass=WithBinary)
