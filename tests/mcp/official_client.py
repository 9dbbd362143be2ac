"""Calls a server with the official client for Python; prints what it has found (test_clients.py).

official_client.py URL MODE, in the environment of `scripts/setup-mcp`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib import import_module
from typing import Any

# Of another environment, which the type checker does not see.
sdk: Any = import_module("mcp")
types: Any = import_module("mcp.types")


async def answer(context: Any, params: Any) -> Any:
    return types.ElicitResult(action="accept", content={"name": "Ann"})


async def main() -> None:
    url, mode = sys.argv[1:]
    steps: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        steps.append(done)

    async with sdk.Client(url, mode=mode, elicitation_callback=answer) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "test_simple_text" in names
        tool = await client.call_tool("test_simple_text", {})
        failed = await client.call_tool("test_error_handling", {})
        resource = await client.read_resource("test://static-text")
        template = await client.read_resource("test://template/7/data")
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        ref = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await client.complete(ref, {"name": "arg1", "value": "par"})
        await client.call_tool("test_tool_with_progress", {}, progress_callback=progress)
        asked = await client.call_tool("test_input_required_result_elicitation", {})
        found = {
            "version": client.protocol_version,
            "tool": tool.content[0].text,
            "failed": failed.is_error,
            "resource": resource.contents[0].text,
            "template": template.contents[0].text,
            "prompt": prompt.messages[0].content.text,
            "completion": [one for one in completed.completion.values if one != "party"],
            "progress": steps,
            "answer": asked.content[0].text,
        }
    print(json.dumps(found))


asyncio.run(main())
