"""Content: what tools, resources and prompts return in, the protocol's content blocks out.

A tool may return any of these, a list of them, or a ``ToolResult`` with all that a result can have. Values of
other types are structured content (results.py). Tests: ``tests/mcp/test_tools.py``.
"""

from __future__ import annotations

from base64 import b64encode

# At run time too: a function may be annotated with these classes, whose fields are read.
from collections.abc import Mapping, Sequence  # noqa: TC003
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

from citius.web.declarations.type_kinds import kind_of, walk

Role: TypeAlias = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Content:
    """What all kinds of content have.

    Args:
        annotations: ``audience``, ``priority`` and ``lastModified``, for the client.
    """

    _: KW_ONLY
    annotations: Mapping[str, object] | None = None

    def block(self) -> dict[str, Any]:
        """The content block of the protocol."""
        raise NotImplementedError

    def _made(self, block: dict[str, Any]) -> dict[str, Any]:
        if self.annotations is not None:
            block["annotations"] = dict(self.annotations)
        return block


@dataclass(frozen=True, slots=True)
class Text(Content):
    """A text."""

    text: str

    def block(self) -> dict[str, Any]:
        """The content block of the protocol."""
        return self._made({"type": "text", "text": self.text})


@dataclass(frozen=True, slots=True)
class Image(Content):
    """An image."""

    data: bytes
    mime_type: str = "image/png"

    def block(self) -> dict[str, Any]:
        """The content block of the protocol."""
        return self._made({"type": "image", "data": _base64(self.data), "mimeType": self.mime_type})


@dataclass(frozen=True, slots=True)
class Audio(Content):
    """A sound."""

    data: bytes
    mime_type: str = "audio/wav"

    def block(self) -> dict[str, Any]:
        """The content block of the protocol."""
        return self._made({"type": "audio", "data": _base64(self.data), "mimeType": self.mime_type})


@dataclass(frozen=True, slots=True)
class Link(Content):
    """A resource that the client may read."""

    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None

    def block(self) -> dict[str, Any]:
        """The content block of the protocol."""
        block: dict[str, Any] = {"type": "resource_link", "uri": self.uri, "name": self.name}
        if self.description is not None:
            block["description"] = self.description
        if self.mime_type is not None:
            block["mimeType"] = self.mime_type
        return self._made(block)


@dataclass(frozen=True, slots=True)
class Embedded(Content):
    """The content of a resource, in a result or a message; also what a resource with several parts returns.

    Args:
        uri: The resource.
        data: A text, or bytes.
        mime_type: Its media type; by the class of ``data`` without it.
    """

    uri: str
    data: str | bytes
    mime_type: str | None = None

    def contents(self) -> dict[str, Any]:
        """The contents of the resource, as the protocol has them."""
        if isinstance(self.data, str):
            mime_type = self.mime_type or "text/plain"
            return {"uri": self.uri, "mimeType": mime_type, "text": self.data}
        mime_type = self.mime_type or "application/octet-stream"
        return {"uri": self.uri, "mimeType": mime_type, "blob": _base64(self.data)}

    def block(self) -> dict[str, Any]:
        """The content block of the protocol."""
        return self._made({"type": "resource", "resource": self.contents()})


@dataclass(frozen=True, slots=True)
class ToolResult:
    """All that the result of a tool can have.

    Args:
        content: What the model reads: texts and content.
        structured: A value for programs.
        is_error: Whether the tool has failed; the model sees why in ``content``.
        meta: What goes into ``_meta``.
    """

    content: Sequence[str | Content] = ()
    structured: Mapping[str, object] | None = None
    is_error: bool = False
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a prompt.

    Args:
        content: A text, or content of another kind.
        role: Who speaks it: ``user`` or ``assistant``.
    """

    content: str | Content
    role: Role = "user"
    _: KW_ONLY
    extra: Mapping[str, object] = field(default_factory=dict[str, object])

    def sent(self) -> dict[str, Any]:
        """The message of the protocol."""
        return {"role": self.role, "content": block_of(self.content), **self.extra}


def has_content(annotation: Any) -> bool:
    """Whether there is content, or a whole result, in a type."""
    found = (kind_of(one).cls for one in walk(annotation))
    return any(isinstance(cls, type) and issubclass(cls, (Content, ToolResult)) for cls in found)


def block_of(value: str | Content) -> dict[str, Any]:
    """The content block of a text or of content."""
    return {"type": "text", "text": value} if isinstance(value, str) else value.block()


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
