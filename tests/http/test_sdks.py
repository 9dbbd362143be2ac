"""SDKs of model providers over the client's connections, with stand-ins for the providers."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from citius.http.httpx import SyncTransport, Transport, install, of
from rig import application

PROVIDER = Path(__file__).parents[2] / "examples/token-gateway/provider.py"
MESSAGES = [{"role": "user", "content": "one two three"}]


async def test_openai(serve) -> None:
    openai = pytest.importorskip("openai")
    base = f"http://127.0.0.1:{serve(PROVIDER, env={'TOKEN_S': '0.001'}).port}/v1"
    down = f"http://127.0.0.1:{serve(PROVIDER, env={'FAILS': '1'}).port}/v1"
    async with httpx.AsyncClient(transport=Transport()) as http:
        client = openai.AsyncOpenAI(base_url=base, api_key="k", http_client=http)
        whole = await client.chat.completions.create(model="m", messages=MESSAGES)
        assert whole.choices[0].message.content == "one two three"
        for _ in range(20):
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            parts = [chunk async for chunk in stream]
            assert "".join(part.choices[0].delta.content or "" for part in parts) == "one two three"
            assert parts[-1].usage.total_tokens == 6
        failing = openai.AsyncOpenAI(base_url=down, api_key="k", http_client=http, max_retries=1)
        with pytest.raises(openai.InternalServerError):
            await failing.chat.completions.create(model="m", messages=MESSAGES)
        nowhere = openai.AsyncOpenAI(
            base_url="http://127.0.0.1:1/v1", api_key="k", http_client=http, max_retries=1
        )
        with pytest.raises(openai.APIConnectionError):
            await nowhere.chat.completions.create(model="m", messages=MESSAGES)


def test_openai_in_a_thread(serve) -> None:
    openai = pytest.importorskip("openai")
    base = f"http://127.0.0.1:{serve(PROVIDER).port}/v1"
    with httpx.Client(transport=SyncTransport()) as http:
        client = openai.OpenAI(base_url=base, api_key="k", http_client=http)
        for _ in range(20):
            stream = client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            assert len(list(stream)) == 4


async def test_anthropic(serve) -> None:
    anthropic = pytest.importorskip("anthropic")
    module = pytest.importorskip("httpx2")  # what it stands on
    base = f"http://127.0.0.1:{serve(application('messages_provider_app')).port}"
    async with module.AsyncClient(transport=of(module)[0]()) as http:
        client = anthropic.AsyncAnthropic(base_url=base, api_key="k", http_client=http)
        whole = await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        assert whole.content[0].text == "one two three"
        async with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
            assert [text async for text in stream.text_stream] == ["one", " two", " three"]
            assert (await stream.get_final_message()).usage.output_tokens == 3
        busy = [{"role": "user", "content": "busy"}]
        for _ in range(3):
            answer = await client.messages.create(model="m", max_tokens=9, messages=busy)
            assert answer.content[0].text == "busy"
        slow = [{"role": "user", "content": "slow"}]
        with pytest.raises(anthropic.APITimeoutError):
            await client.with_options(timeout=0.1, max_retries=0).messages.create(
                model="m", max_tokens=9, messages=slow
            )


async def test_clients_that_sdks_make_themselves(serve) -> None:
    """OpenAI's leaves the transport to httpx2, Anthropic's makes one of httpx2's class, for keep-alive."""
    anthropic, openai = pytest.importorskip("anthropic"), pytest.importorskip("openai")
    provider = f"http://127.0.0.1:{serve(PROVIDER).port}/v1"
    messages = f"http://127.0.0.1:{serve(application('messages_provider_app')).port}"
    undo = install(pytest.importorskip("httpx2"))
    try:
        of_openai = openai.AsyncOpenAI(base_url=provider, api_key="k")
        of_anthropic = anthropic.AsyncAnthropic(base_url=messages, api_key="k")
    finally:
        undo()
    async with of_openai, of_anthropic:
        for client in (of_openai, of_anthropic):
            assert isinstance(client._client._transport, Transport)
        chat = await of_openai.chat.completions.create(model="m", messages=MESSAGES)
        assert chat.choices[0].message.content == "one two three"
        message = await of_anthropic.messages.create(model="m", max_tokens=9, messages=MESSAGES)
        assert message.content[0].text == "one two three"
