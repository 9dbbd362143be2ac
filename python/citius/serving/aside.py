"""A package that the supervisor has imported for its workers, put aside in a worker until one imports it.

Its memory is shared either way. But so a worker knows whether its application has imported asyncio, and hears
of it when that is done later (late_loop.py). Tests: ``tests/hosts/test_late_loop.py``.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType


def put_aside(package: str) -> None:
    """Take ``package`` out of the modules, so that the next import of it brings it back as it was."""
    found = {
        name: module
        for name, module in sys.modules.items()
        if name == package or name.startswith(f"{package}.")
    }
    if package in found:
        for name in found:
            del sys.modules[name]
        sys.meta_path.insert(0, _Aside(package, found))


class _Aside:
    """What finds and loads it again."""

    def __init__(self, package: str, modules: dict[str, ModuleType]) -> None:
        self._package, self._modules = package, modules
        module = modules[package]
        self._own = module.__spec__, module.__loader__

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        loader: Any = self
        return ModuleSpec(name, loader, is_package=True) if name == self._package else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._modules[self._package]

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self._own
        sys.modules.update(self._modules)
        sys.meta_path.remove(self)
