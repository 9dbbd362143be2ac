"""Directories that are served without the application: what ``--static`` and ``App.static`` mean.

The serving itself is the extension's (crates/citius-static); here a mount is only described and checked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from citius._core import FileBody, Request, Response, StaticDirectory
from citius.errors import ConfigError, NotFound
from citius.observability import logging
from citius.records import record
from citius.settings.texts import parse_mount
from citius.web.responses.files import file_response
from citius.web.responses.shortcuts import redirect
from citius.web.routing.declared_routes import Route
from citius.web.routing.static_checks import (
    check_mount,
    describe_missing,
    refuse_missing,
    refuse_two_of_a_prefix,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius.settings.config import Config
    from citius.web.declarations.parameters.sources import Depends


@record(frozen=True, slots=True, kw_only=True)
class Mount:
    """A directory, and how its files are served.

    Raises:
        ConfigError: The prefix is none.
    """

    prefix: str
    """``/assets``, or empty for everything."""
    directory: str
    index: str | None = "index.html"
    """The file that a directory is answered with."""
    cache_control: str | None = None
    dotfiles: bool = False
    symlinks: bool = False
    """Follow symbolic links that stay inside the directory."""
    precompressed: bool = True
    """Send ``name.br``, ``name.zst`` or ``name.gz`` for ``name`` to those who accept it."""
    optional: bool = False
    """Leave the mount out if the directory is missing."""
    fallback: str | None = None
    """The file that requests for pages get where there is none."""
    middleware: bool = True
    """Let middleware see its responses, if there is any."""
    is_root: bool = False
    """Serve what is there, and leave the rest to the routes: ``/`` of an application, mounted or not."""
    where: str = "--static"
    """File and line that declare it."""

    def __post_init__(self) -> None:
        prefix = self.prefix
        if prefix and (not prefix.startswith("/") or prefix.endswith("/") or "//" in prefix):
            raise ConfigError(
                f"a static prefix begins with a slash and ends without one, got {prefix!r} ({self.where})"
            )
        check_mount(self)
        if self.fallback is None:
            return
        parts = self.fallback.split("/")
        if any(not part or part.startswith(".") for part in parts):
            raise ConfigError(
                f"static {prefix or '/'} ({self.where}): fallback is a file below the directory, such as "
                f"'index.html', got {self.fallback!r}"
            )
        if not self.middleware and not self.is_root:
            raise ConfigError(
                f"static {prefix} ({self.where}): a fallback below a prefix is sent by Python code, which "
                "middleware sees; drop middleware=False or fallback"
            )

    @property
    def falls_through(self) -> bool:
        """Whether what is not there is the application's business: only below a prefix is it clear."""
        return self.is_root or not self.prefix

    @property
    def passes_middleware(self) -> bool:
        """Whether middleware sees its responses: only below a prefix is it clear whose they are."""
        return self.middleware and bool(self.prefix)


def mounts_of(config: Config, app: object) -> list[Mount]:
    """The mounts of a configuration and those an application declares itself.

    Raises:
        ConfigError: A directory is not there, or two have the same prefix.
    """
    mounts = [
        Mount(
            prefix=prefix,
            directory=directory,
            index=config.static_index or None,
            cache_control=config.static_cache_control,
            dotfiles=config.static_dotfiles,
            symlinks=config.static_symlinks,
            precompressed=config.static_precompressed,
            optional=config.static_optional,
        )
        for prefix, directory in map(parse_mount, config.static)
    ]
    own = [mount for one in getattr(app, "walk", tuple)() for mount in one.statics()]
    refuse_two_of_a_prefix([*mounts, *own])
    for mount in mounts:
        refuse_missing(mount)
    mounts += getattr(app, "static_mounts", ())
    return [mount for mount in mounts if is_there(mount)]


def challenge_mounts(config: Config) -> list[Mount]:
    """Where authorities that issue certificates look for the answers to their challenges (RFC 8555 §8.3)."""
    if not config.acme:
        return []
    directory = next(path for path in config.acme_readable if path.endswith("http-01"))
    return [
        Mount(prefix="/.well-known/acme-challenge", directory=directory, precompressed=False,
              index=None, where="--acme")
    ]  # fmt: skip


def routes_of(mount: Mount, dependencies: tuple[Depends, ...] = ()) -> list[Route]:
    """The routes of a mount, with its full prefix, whose responses pass middleware and dependencies."""
    if not is_there(mount):
        return []
    directory = StaticDirectory(mount)
    fallback = fallback_of((mount,))

    def static_file(request: Request, _path: str) -> Response:
        found = directory.find(request)
        if not found:
            page = None if fallback is None else fallback(request)
            if page is None:
                raise NotFound
            return page
        if isinstance(found, bool):
            query = request.raw_query.decode("latin-1")
            location = request.raw_path.decode("latin-1") + "/" + (f"?{query}" if query else "")
            return redirect("/" + location.lstrip("/"), 301)
        return Response(found)

    def static_root(request: Request) -> Response:
        return static_file(request, "")

    patterns = {mount.prefix: static_root, mount.prefix + "/{_path:path}": static_file}
    return [
        Route("GET", pattern, handler, "def", dependencies=dependencies)
        for pattern, handler in patterns.items()
    ]


def is_mounted(handler: object) -> bool:
    """Whether a handler is that of a mount: of an application, or of a directory."""
    return hasattr(handler, "_citius_mounted") or getattr(handler, "__module__", "") == __name__


def fallback_of(mounts: Iterable[Mount]) -> Callable[[Request], Response | None] | None:
    """What responds to requests for pages that are not there with the file of the mount that has one.

    Raises:
        ConfigError: The file is not there.
    """
    mount = next((one for one in mounts if one.fallback is not None and is_there(one)), None)
    if mount is None or mount.fallback is None:
        return None
    directory, name = os.path.abspath(mount.directory), mount.fallback
    try:
        FileBody(name, directory)
    except OSError:
        raise ConfigError(
            f"static {mount.prefix or '/'} ({mount.where}): the fallback {name!r} is no file in {directory!r}"
        ) from None
    headers = [("vary", "accept")]
    if mount.cache_control is not None:
        headers.append(("cache-control", mount.cache_control))

    def fallback(request: Request) -> Response | None:
        if request.method not in ("GET", "HEAD") or not _accepts_html(request):
            return None
        return file_response(name, root=directory, headers=headers)

    return fallback


def _accepts_html(request: Request) -> bool:
    """Whether ``Accept`` names HTML, as browsers do for pages; scripts and images say ``*/*``."""
    for media_range in (request.header("accept") or "").split(","):
        media_type, _, parameters = media_range.partition(";")
        if media_type.strip().lower() == "text/html":
            return not any(_is_weight_of_none(one) for one in parameters.split(";"))
    return False


def _is_weight_of_none(parameter: str) -> bool:
    """Whether it is ``q=0``: the client does not take the type (RFC 9110 section 12.4.2)."""
    name, _, value = parameter.strip().lower().partition("=")
    return name == "q" and value.rstrip("0") in ("", "0.", "0")


def is_there(mount: Mount) -> bool:
    """Whether its directory is there; the log says which mount is left out."""
    if os.path.isdir(mount.directory):
        return True
    logging.info(f"{describe_missing(mount)}; it is optional and left out")
    return False
