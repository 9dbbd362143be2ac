"""OpenAPI: the document of an application, and pages that show it.

``document.py`` makes the document of endpoints, ``schemas.py`` the JSON Schemas in it, ``pages.py`` serves
both with Swagger UI, whose files are in ``ui/``. Nothing here is imported before it is needed.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.records import record
from citius.unknown_options import caller, known_options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@known_options
@record(frozen=True, slots=True, kw_only=True)
class OpenAPI:
    """What an application says of its documentation.

    Args:
        title: The name of the API.
        version: The version of the API.
        description: What it is for, in Markdown.
        servers: URLs that it is served at; the one that the document comes from without any.
        tags: Groups of operations and what they are.
        path: Where the document is served; ``None``: nowhere.
        docs: Where the pages are served; ``None``: nowhere.
        enabled: Whether they are served; ``None``: with ``--reload`` only.
        extra: Further members of the document, such as ``webhooks``.
    """

    title: str = "API"
    version: str = "0.1.0"
    description: str | None = None
    servers: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    path: str | None = "/openapi.json"
    docs: str | None = "/docs"
    enabled: bool | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        for name in ("path", "docs"):
            path = getattr(self, name)
            if path is not None and not path.startswith("/"):
                raise ConfigError(
                    f"OpenAPI ({caller()}): {name}= begins with a slash, got {path!r}"
                )
        if self.path is not None and self.path == self.docs:
            raise ConfigError(f"OpenAPI ({caller()}): path= and docs= are both {self.path!r}")
