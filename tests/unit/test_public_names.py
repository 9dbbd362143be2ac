"""Public names are there, listed, and imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

PACKAGES = ["citius", "citius.web.middleware", "citius.web.security"]


@pytest.mark.parametrize("package", PACKAGES)
def test_names_are_there_and_listed(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        assert getattr(module, name) is not None, name
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing


def test_an_import_brings_no_home_along() -> None:
    code = (
        "import citius, sys; print(*(name for name in sys.modules if name.startswith('citius.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["citius.lazy"]
