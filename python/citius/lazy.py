"""Public names of a package that are imported when they are first used, so that a worker holds what it needs.

In: the names by the modules that define them. Out: the package's ``__getattr__`` and ``__dir__`` (PEP 562).
Tests: ``tests/unit/test_public_names.py``.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def exports(
    package: str, homes: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    Args:
        package: Its name.
        homes: The names that each of its modules defines, by the module's name within the package.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def get(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            # `from package import name` says nothing of an AttributeError, which hasattr wants.
            is_import = sys._getframe(1).f_code.co_name == "_handle_fromlist"  # pyright: ignore
            raise _missing(package, name, is_import=is_import)
        from importlib import import_module

        value = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get, names


def _missing(package: str, name: str, *, is_import: bool) -> Exception:
    """The exception for a name that a package does not have, with what to write if that is known."""
    text = f"module {package!r} has no attribute {name!r}"
    # The import of a module asks for an attribute of its name first.
    if package != "citius" or name.startswith("_") or (is_import and _is_module(package, name)):
        return AttributeError(text)
    from citius.names_elsewhere import INSTEAD

    hint = INSTEAD.get(name)
    if hint is None:
        return AttributeError(text)
    if is_import:
        return ImportError(f"cannot import name {name!r} from {package!r}; {hint}", name=package)
    return AttributeError(f"{text}; {hint}")


def _is_module(package: str, name: str) -> bool:
    from importlib.machinery import PathFinder

    return PathFinder.find_spec(f"{package}.{name}", sys.modules[package].__path__) is not None
