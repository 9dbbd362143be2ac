"""An extension of griffe, which reads docstrings for the site.

Griffe keeps overloads beside the function that implements them, and a stub has none. It knows the
parameters of dataclasses, and ``citius.records.record`` makes classes like them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from griffe import Alias, Class, Extension, Module

if TYPE_CHECKING:
    from griffe import Function


class Overloads(Extension):
    """Puts the last overload where the implementation would be; shows records as dataclasses."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Complete a package that has been read."""
        complete(pkg)


def complete(scope: Module | Class) -> None:
    """Complete a module or a class, and what is in it."""
    for name, found in scope.overloads.items():
        if name not in scope.members and found:
            function: Function = found[-1]
            documented = next((one for one in reversed(found) if one.docstring), function)
            function.docstring = documented.docstring
            function.overloads = list(found)
            scope.set_member(name, function)
    for member in list(scope.members.values()):
        if isinstance(member, Alias) and member.target_path == "citius.records.record":
            member.target_path = "dataclasses.dataclass"
        if isinstance(member, Module | Class):
            complete(member)
