"""``Context``: what a function can do while it is called: report progress, log, ask the client.

A function has one by a parameter that is annotated with it. Before 2026-07-28 a question goes to the client
on the response's stream, and the function waits for the answer. Since then a request ends with the questions,
and the client sends it again with the answers: the function is called again from its start, and ``ask``
returns what has been answered. Tests: ``tests/mcp/test_context.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from citius.mcp.inputs import Answer, Elicit, Input, ListRoots, OpenURL, Root, Sample, Sampled
from citius.mcp.protocol import LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from citius._core import Request
    from citius.mcp.content import Content, Message
    from citius.mcp.exchange import Exchange
    from citius.mcp.protocol import Level


class Context:
    """The call that a function serves."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    @property
    def request(self) -> Request:
        """The HTTP request that has brought the call."""
        return self._exchange.request

    @property
    def version(self) -> str:
        """The version of the protocol."""
        return self._exchange.version

    def supports(self, what: type[Input] | Input) -> bool:
        """Whether the client can be asked for something: ``context.supports(Sample)``."""
        return what.capability in self._exchange.capabilities

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the call is, if it wants to know; each time with a greater number."""
        token = self._exchange.progress_token
        if token is None:
            return
        params: dict[str, Any] = {"progressToken": token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self._exchange.notify("notifications/progress", params)

    async def log(self, level: Level, data: object, *, logger: str | None = None) -> None:
        """Send a message of the log to the client, if it wants those of this level.

        Args:
            level: One of ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``, ``alert`` and
                ``emergency``.
            data: A text, or anything that JSON can say.
            logger: What logs it.
        """
        place = LEVELS.index(level)
        least = await self._exchange.level()
        if least is None or place < LEVELS.index(least):
            return
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        self._exchange.notify("notifications/message", params)

    async def close_stream(self, *, retry_s: float = 1.0) -> None:
        """Close the connection while the call goes on, so that none is held open while it waits for long.

        The client comes back for what follows. Nothing happens where it cannot: with a stateless client, or
        with ``resume_s=0``.

        Args:
            retry_s: How soon the client comes back.
        """
        await self._exchange.close_stream(retry_s)

    async def debug(self, data: object) -> None:
        """``log`` at this level."""
        await self.log("debug", data)

    async def info(self, data: object) -> None:
        """``log`` at this level."""
        await self.log("info", data)

    async def warning(self, data: object) -> None:
        """``log`` at this level."""
        await self.log("warning", data)

    async def error(self, data: object) -> None:
        """``log`` at this level."""
        await self.log("error", data)

    async def ask(self, *inputs: Input) -> list[Any]:
        """Ask the client for several things at once; returns a value for each.

        Raises:
            ToolError: The client has refused, has left, or has not answered in time.
        """
        return await self._exchange.ask(inputs)

    async def elicit(self, message: str, form: Any, *, key: str | None = None) -> Answer[Any]:
        """Ask the user to fill in a form; see ``Elicit``."""
        (answer,) = await self.ask(Elicit(message, form, key=key))
        return cast("Answer[Any]", answer)

    async def open_url(
        self, message: str, url: str, *, id: str, key: str | None = None
    ) -> Answer[None]:
        """Ask the user to visit a page; see ``OpenURL``."""
        (answer,) = await self.ask(OpenURL(message, url, id=id, key=key))
        return cast("Answer[None]", answer)

    async def sample(
        self,
        messages: str | Content | Sequence[Message],
        *,
        max_tokens: int,
        system: str | None = None,
        temperature: float | None = None,
        options: Mapping[str, object] | None = None,
        key: str | None = None,
    ) -> Sampled:
        """Ask a model of the client; see ``Sample``."""
        (said,) = await self.ask(
            Sample(
                messages, max_tokens=max_tokens, system=system, temperature=temperature,
                options=options, key=key,
            )
        )  # fmt: skip
        return cast("Sampled", said)

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """The places that the client lets the server work in."""
        (found,) = await self.ask(ListRoots(key=key))
        return cast("list[Root]", found)
