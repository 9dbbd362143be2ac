"""A tool of Citius."""

from dataclasses import dataclass

from citius import App

app = App()
mcp = app.mcp("/mcp", name="lab")


@dataclass
class Sum:
    """What the tool returns."""

    total: int


@mcp.tool
def add(a: int, b: int) -> Sum:
    """The sum of two numbers."""
    return Sum(a + b)
