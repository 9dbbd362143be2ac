"""What the conformance suite of the Model Context Protocol asks a server for (scripts/mcp_conformance.py).

Names and texts are the suite's. Variants of the application are told by environment variables: ``MCP_SECRET``
signs its sessions, for servers of several machines.
"""

from __future__ import annotations

import asyncio
import os
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
from citius import App, Body, Response
from citius.mcp import (
    Audio,
    Content,
    Context,
    Elicit,
    Embedded,
    Image,
    ListRoots,
    Message,
    Sample,
    Text,
    ToolError,
)

app = App()
mcp = app.mcp(
    "/mcp", name="everything", version="1.0.0", instructions="Says what it is told.",
    secret=os.environ.get("MCP_SECRET"),
)  # fmt: skip

PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==")


@app.get("/live")
def live() -> Response:
    return Response(b"")


# --- tools ------------------------------------------------------------------------------------------------


@mcp.tool
def test_simple_text() -> str:
    """A text."""
    return "This is a simple text response for testing."


@mcp.tool
def test_image_content() -> Image:
    """An image."""
    return Image(PNG)


@mcp.tool
def test_audio_content() -> Audio:
    """A sound."""
    return Audio(WAV)


@mcp.tool
def test_embedded_resource() -> Embedded:
    """A resource in the result."""
    return Embedded("test://embedded-resource", "This is an embedded resource content.")


@mcp.tool
def test_multiple_content_types() -> list[Content]:
    """Several kinds of content."""
    data = '{"test":"data","value":123}'
    return [
        Text("Multiple content types test:"),
        Image(PNG),
        Embedded("test://mixed-content-resource", data, "application/json"),
    ]


@mcp.tool
def test_error_handling() -> str:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


async def logging(context: Context) -> str:
    for text in ("started", "processing data", "completed"):
        subject = "Tool" if text.startswith("processing") else "Tool execution"
        await context.info(f"{subject} {text}")
        await asyncio.sleep(0.05)
    return "Done."


mcp.tool("test_tool_with_logging", description="Logs.")(logging)
mcp.tool("test_logging_tool", description="Logs.")(logging)


@mcp.tool
async def test_tool_with_progress(context: Context) -> str:
    """Reports progress."""
    for progress in (0, 50, 100):
        await context.progress(progress, 100)
        await asyncio.sleep(0.05)
    return "Done."


@mcp.tool
async def test_reconnection(context: Context) -> str:
    """Closes its stream before it has a result."""
    await context.close_stream(retry_s=0.1)
    await asyncio.sleep(0.2)
    return "Reconnected."


@mcp.tool
async def test_sampling(context: Context, prompt: str) -> str:
    """Asks a model."""
    said = await context.sample(prompt, max_tokens=100)
    return f"LLM response: {said.text}"


@dataclass
class Person:
    username: Annotated[str, msgspec.Meta(description="User's response")]
    email: Annotated[str, msgspec.Meta(description="User's email address")]


@mcp.tool
async def test_elicitation(context: Context, message: str) -> str:
    """Asks the user."""
    answer = await context.elicit(message, Person)
    return f"User response: action: {answer.action}, content: {answer.value}"


class Status(Enum):
    ACTIVE = "active"
    INACTIVE = "inactive"
    PENDING = "pending"


@dataclass
class Defaults:
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@mcp.tool
async def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Asks with defaults."""
    answer = await context.elicit("Who are you?", Defaults)
    return f"Elicitation completed: action={answer.action}, content={answer.value}"


def titled(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"const": value, "title": title} for value, title in pairs]


ENUMS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": titled(
                ("value1", "First Option"), ("value2", "Second Option"), ("value3", "Third Option")
            ),
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": titled(
                    ("value1", "First Choice"),
                    ("value2", "Second Choice"),
                    ("value3", "Third Choice"),
                )
            },
        },
    },
    "required": [],
}


@mcp.tool
async def test_elicitation_sep1330_enums(context: Context) -> str:
    """Asks for choices."""
    answer = await context.elicit("Choose", ENUMS)
    return f"Elicitation completed: action={answer.action}, content={answer.value}"


@mcp.tool("test_header", headers={"region": "Region"})
def header(region: str = "", count: int = 0) -> str:
    """Has an argument that clients repeat in a field."""
    return f"{region} {count}"


@dataclass
class Address:
    street: str = ""
    city: str = ""


ADDRESS = {"street": {"type": "string"}, "city": {"type": "string"}}


@mcp.tool(
    "json_schema_2020_12_tool",
    schema={
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": ADDRESS}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
    },
)
def contact(
    name: str = "",
    address: Annotated[Address | None, Body()] = None,
    method: Annotated[Literal["phone", "email"], Body(alias="contactMethod")] = "email",
    phone: str = "",
    email: str = "",
) -> str:
    """Has arguments that go together."""
    return f"{name} {method} {phone} {email}"


@mcp.tool
async def test_missing_capability(context: Context) -> str:
    """Asks a model, which the client may not have."""
    await context.sample("anything", max_tokens=10)
    return "Done."


# --- tools whose questions end a request --------------------------------------------------------------------


@dataclass
class Name:
    name: str


@dataclass
class Color:
    color: str


@dataclass
class Confirmation:
    ok: bool


@mcp.tool
async def test_streaming_elicitation(context: Context) -> str:
    """Reports progress, then asks."""
    await context.progress(1, 2)
    answer = await context.elicit("What is your name?", Name)
    return f"Hello, {answer.value}!"


@mcp.tool
async def test_input_required_result_elicitation(context: Context) -> str:
    """Asks for a name."""
    answer = await context.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.value.name if answer.value else 'stranger'}!"


@mcp.tool
async def test_input_required_result_sampling(context: Context) -> str:
    """Asks a model."""
    said = await context.sample(
        "What is the capital of France?", max_tokens=100, key="capital_question"
    )
    return said.text


@mcp.tool
async def test_input_required_result_list_roots(context: Context) -> str:
    """Asks for roots."""
    return " ".join(one.uri for one in await context.roots(key="client_roots"))


async def confirmed(context: Context) -> str:
    """Asks for a confirmation."""
    answer = await context.elicit("Please confirm", Confirmation, key="confirm")
    return f"state-ok {answer.action}"


mcp.tool("test_input_required_result_request_state")(confirmed)
mcp.tool("test_input_required_result_tampered_state")(confirmed)


@mcp.tool
async def test_input_required_result_multiple_inputs(context: Context) -> str:
    """Asks for several things at once."""
    answer, said, roots = await context.ask(
        Elicit("What is your name?", Name, key="user_name"),
        Sample("Generate a greeting", max_tokens=50, key="greeting"),
        ListRoots(key="client_roots"),
    )
    return f"{answer.value} {said.text} {len(roots)}"


@mcp.tool
async def test_input_required_result_multi_round(context: Context) -> str:
    """Asks twice."""
    name = await context.elicit("Step 1: What is your name?", Name, key="step1")
    color = await context.elicit("Step 2: What is your favorite color?", Color, key="step2")
    return f"{name.value} likes {color.value}"


@mcp.tool
async def test_input_required_result_capabilities(context: Context) -> str:
    """Asks for what the client can be asked for."""
    wanted = [
        Elicit("What is your name?", Name, key="user_name"),
        Sample("Generate a greeting", max_tokens=50, key="greeting"),
    ]
    found = await context.ask(*filter(context.supports, wanted))
    return str(len(found))


# --- resources and prompts ----------------------------------------------------------------------------------


@mcp.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@mcp.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image."""
    return PNG


@mcp.resource("test://watched-resource")
def watched_resource() -> str:
    """What clients subscribe to."""
    return "watched"


@mcp.resource("test://template/{id}/data")
def template(id: str) -> dict[str, object]:
    """Data by their identifier."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@mcp.tool
def touch(uri: str = "test://watched-resource") -> str:
    """Says that a resource has changed."""
    mcp.resource_updated(uri)
    return "Touched."


@mcp.prompt
def test_simple_prompt() -> str:
    """A prompt."""
    return "This is a simple prompt for testing."


@mcp.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: The first.
        arg2: The second.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@mcp.completion("test_prompt_with_arguments", "arg1")
def complete_arg1(written: str) -> list[str]:
    return [one for one in ("paris", "park", "party") if one.startswith(written)]


@mcp.prompt
def test_prompt_with_embedded_resource(
    uri: Annotated[str, Body(alias="resourceUri")],
) -> list[Message]:
    """A prompt with a resource."""
    return [
        Message(Embedded(uri, "Embedded resource content for testing.")),
        Message("Please process the embedded resource above."),
    ]


@mcp.prompt
def test_prompt_with_image() -> list[Message]:
    """A prompt with an image."""
    return [Message(Image(PNG)), Message("Please analyze the image above.")]


@dataclass
class Chosen:
    context: str


@mcp.prompt
async def test_input_required_result_prompt(context: Context) -> str:
    """A prompt that asks."""
    answer = await context.elicit("What context should the prompt use?", Chosen, key="user_context")
    return f"Use the context {answer.value}."
