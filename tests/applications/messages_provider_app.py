"""A stand-in for a provider with Anthropic's interface: it repeats the last message, word by word."""

# pyright: basic

import asyncio
from collections.abc import AsyncIterator

from citius import App, Event, Request, Response, TooManyRequests, event_stream
from msgspec import json

app = App()
calls = 0


@app.post("/v1/messages")
async def messages(request: Request) -> Response | dict:
    global calls
    calls += 1
    body = request.json()
    words = body["messages"][-1]["content"].split()
    if words == ["busy"] and calls % 2:
        raise TooManyRequests("later", headers={"retry-after": "0"})
    if words == ["slow"]:
        await asyncio.sleep(60)
    usage = {"input_tokens": len(words), "output_tokens": len(words)}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    if not body.get("stream"):
        content = [{"type": "text", "text": " ".join(words)}]
        return {**message, "content": content, "stop_reason": "end_turn"}
    return event_stream(events(message, words, usage))


async def events(message: dict, words: list[str], usage: dict[str, int]) -> AsyncIterator[Event]:
    def event(kind: str, **values: object) -> Event:
        return Event(json.encode({"type": kind, **values}).decode(), event=kind)

    yield event("message_start", message=message)
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for number, word in enumerate(words):
        text = f" {word}" if number else word
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})
        await asyncio.sleep(0)
    yield event("content_block_stop", index=0)
    yield event(
        "message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None}, usage=usage
    )
    yield event("message_stop")
