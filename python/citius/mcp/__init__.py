"""Model Context Protocol (MCP): tools, resources and prompts for assistants, on the application's own port.

    from citius import App

    app = App()
    mcp = app.mcp("/mcp", name="notes")

    @mcp.tool
    def add(a: int, b: int) -> int:
        "The sum of two numbers."
        return a + b

``citius serve module:app`` serves it over HTTP, ``citius mcp module:app`` over standard input and output. An
application without ``App.mcp`` imports nothing of this package. Names are imported when they are first used.
The guide is docs/guides/mcp.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.lazy import exports

if TYPE_CHECKING:
    from citius.mcp.authorization import Authorization
    from citius.mcp.content import (
        Audio,
        Content,
        Embedded,
        Image,
        Link,
        Message,
        Text,
        ToolResult,
    )
    from citius.mcp.context import Context
    from citius.mcp.faults import ToolError
    from citius.mcp.inputs import Answer, Elicit, ListRoots, OpenURL, Sample
    from citius.mcp.server import MCPServer

__all__ = [
    "Answer",
    "Audio",
    "Authorization",
    "Content",
    "Context",
    "Elicit",
    "Embedded",
    "Image",
    "Link",
    "ListRoots",
    "MCPServer",
    "Message",
    "OpenURL",
    "Sample",
    "Text",
    "ToolError",
    "ToolResult",
]

__getattr__, __dir__ = exports(
    "citius.mcp",
    {
        "authorization": ["Authorization"],
        "content": [
            "Audio",
            "Content",
            "Embedded",
            "Image",
            "Link",
            "Message",
            "Text",
            "ToolResult",
        ],
        "context": ["Context"],
        "faults": ["ToolError"],
        "inputs": ["Answer", "Elicit", "ListRoots", "OpenURL", "Sample"],
        "server": ["MCPServer"],
    },
)
