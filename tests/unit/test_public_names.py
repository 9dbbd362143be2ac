"""Public names are there, listed, and imported when they are first used."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module

import citius
import pytest
from citius.names_elsewhere import INSTEAD

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


@pytest.mark.parametrize("name", INSTEAD)
def test_names_of_other_packages_have_a_hint(name: str) -> None:
    assert not hasattr(citius, name)
    assert name not in citius.__all__
    hint = re.escape(INSTEAD[name])
    with pytest.raises(ImportError, match=f"cannot import name '{name}' from 'citius'; {hint}$"):
        exec(f"from citius import {name}")
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; {hint}$"):
        getattr(citius, name)


def test_hints_name_what_is_there() -> None:
    for hint in INSTEAD.values():
        for line in re.findall(r"`(from .*)`", hint):
            exec(line, {})
        for name in re.findall(r"\b([A-Z]\w+)\b(?!`)|\b(\w+)\(", re.sub("`.*`", "", hint)):
            word = name[0] or name[1]
            assert hasattr(citius, word) or hasattr(citius.App, word), hint


def test_other_names_have_none() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'nothing' from 'citius' \("):
        exec("from citius import nothing")


def test_modules_need_no_hints() -> None:
    code = "from citius import lazy, records; import sys; print('citius.names_elsewhere' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
