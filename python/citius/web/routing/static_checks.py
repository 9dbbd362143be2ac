"""Static mounts beside everything else that is declared: what would never be called ends the start.

One check for all that serve an application: ``citius serve``, the test client, other servers. Tests:
``tests/gateway/test_static_checks.py``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from citius.errors import ConfigError
from citius.web.routing.declared_routes import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citius.web.routing.endpoint import Endpoint
    from citius.web.routing.mounted import Member
    from citius.web.routing.static import Mount


_NOT_IN_PATHS: Final = frozenset("{}?#%")
_DOTS: Final = frozenset({".", ".."})


def check_static_mounts(members: Iterable[Member], endpoints: Sequence[Endpoint]) -> None:
    """Check the static mounts of an application and of those mounted in it.

    Args:
        members: The applications.
        endpoints: What else they serve: routes and WebSockets.

    Raises:
        ConfigError: A directory is not there, two mounts have the same prefix, or a mount takes all
            requests of a route or of a mounted application.
    """
    mounts = [(mount, one.passes_python(mount)) for one in members for mount in one.statics()]
    refuse_two_of_a_prefix(mount for mount, _ in mounts)
    for mount, passes_python in mounts:
        if not os.path.isdir(mount.directory):
            refuse_missing(mount)
            continue
        hidden = _hidden_in_python if passes_python else _hidden
        for endpoint in endpoints:
            if what := hidden(mount, endpoint):
                raise ConfigError(
                    f"{what} of {endpoint.pattern} for {endpoint.where} never come there: the files of "
                    f"{mount.prefix} ({mount.where}) take them; give one of them another path"
                )


def check_mount(mount: Mount) -> None:
    """Check what a mount is described by.

    Raises:
        ConfigError: No request has the prefix, or responses cannot have the file or the field.
    """
    segments = mount.prefix.split("/")
    if "*" in segments[-1] or "**" in segments:
        raise ConfigError(
            f"static {mount.prefix} ({mount.where}): a prefix takes all that is below it; write it without *"
        )
    # Prefixes are compared with decoded paths, in which there are no dot segments.
    if not _NOT_IN_PATHS.isdisjoint(mount.prefix) or not _DOTS.isdisjoint(segments):
        raise ConfigError(
            f"static {mount.prefix} ({mount.where}): a prefix, with those of what it is mounted in, is "
            "the path as it is shown, without parameters, escapes, dot segments and a query"
        )
    if mount.index is not None and (
        "/" in mount.index or "\0" in mount.index or mount.index in ("", ".", "..")
    ):
        raise ConfigError(
            f"static {mount.prefix or '/'} ({mount.where}): index {mount.index!r} is not the name of a file"
        )
    if mount.cache_control is not None and not mount.cache_control.isprintable():
        raise ConfigError(
            f"static {mount.prefix or '/'} ({mount.where}): cache_control= has a control character, "
            f"{mount.cache_control!r}"
        )


def refuse_two_of_a_prefix(mounts: Iterable[Mount]) -> None:
    """Refuse the second mount of a prefix.

    Raises:
        ConfigError: There is one.
    """
    seen: dict[str, Mount] = {}
    for mount in mounts:
        other = seen.setdefault(mount.prefix, mount)
        if other is not mount:
            raise ConfigError(
                f"static {mount.prefix or '/'} is mounted twice: {other.directory} ({other.where}) "
                f"and {mount.directory} ({mount.where})"
            )


def refuse_missing(mount: Mount) -> None:
    """Refuse a mount whose directory is missing, unless it is optional.

    Raises:
        ConfigError: It is missing.
    """
    if not mount.optional and not os.path.isdir(mount.directory):
        raise ConfigError(f"{describe_missing(mount)}; make it, or declare it optional")


def describe_missing(mount: Mount) -> str:
    """What messages say of a mount whose directory is missing."""
    return (
        f"static {mount.prefix or '/'} ({mount.where}): there is no directory {mount.directory!r} "
        f"(looked in {os.getcwd()})"
    )


def _hidden(mount: Mount, endpoint: Endpoint) -> str:
    """What the extension takes from an endpoint: everything at and below the prefix."""
    if mount.falls_through:
        return ""
    below = f"{endpoint.pattern}/".startswith(f"{mount.prefix}/")
    return f"{endpoint.method.strip('*')} requests".lstrip() if below else ""


def _hidden_in_python(mount: Mount, endpoint: Endpoint) -> str:
    """What the routes of a mount take from an endpoint: GET and HEAD of the same paths."""
    if endpoint.method not in ("GET", "*"):
        return ""
    shape = shape_of(endpoint.pattern)
    return "GET requests" if shape in (mount.prefix, mount.prefix + "/{:path}") else ""
