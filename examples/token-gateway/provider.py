"""A stand-in for a provider of language models: it repeats the last message, word by word, as tokens.

    TOKEN_S=0.005 citius serve examples/token-gateway/provider.py --port 9001

``FAILS=1`` makes one that is down.
"""

import asyncio
import os
from collections.abc import AsyncIterator

import msgspec
from citius import App, Response, ServiceUnavailable, event_stream


class Message(msgspec.Struct):
    role: str
    content: str


class Completion(msgspec.Struct):
    model: str
    messages: list[Message]
    stream: bool = False


app = App()
token_s = float(os.environ.get("TOKEN_S", "0"))


@app.post("/v1/chat/completions")
async def complete(body: Completion) -> Response | dict[str, object]:
    if os.environ.get("FAILS"):
        raise ServiceUnavailable("no capacity")
    words = body.messages[-1].content.split()
    usage = {
        "prompt_tokens": len(words),
        "completion_tokens": len(words),
        "total_tokens": 2 * len(words),
    }
    base = {"id": "chatcmpl-1", "created": 0, "model": body.model}
    if not body.stream:
        message = {"role": "assistant", "content": " ".join(words)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        return {**base, "object": "chat.completion", "choices": [choice], "usage": usage}

    async def chunks() -> AsyncIterator[str]:
        for number, word in enumerate(words):
            await asyncio.sleep(token_s)
            delta = {"content": word if number == 0 else f" {word}", "role": "assistant"}
            choices = [{"index": 0, "delta": delta, "finish_reason": None}]
            yield encode({**base, "object": "chat.completion.chunk", "choices": choices})
        last = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
        yield encode({**base, "object": "chat.completion.chunk", "choices": last, "usage": usage})
        yield "[DONE]"

    return event_stream(chunks())


def encode(value: object) -> str:
    return msgspec.json.encode(value).decode()
