"""The tool by the official SDK, which answers in JSON."""

from dataclasses import dataclass

from mcp.server.mcpserver import MCPServer

server = MCPServer("lab")


@dataclass
class Sum:
    """What the tool returns."""

    total: int


@server.tool()
def add(a: int, b: int) -> Sum:
    """The sum of two numbers."""
    return Sum(a + b)


app = server.streamable_http_app(json_response=True)
