"""Request bodies that arrive in pieces: ``request.stream()`` and ``request.read()``.

The extension gives out the pieces (``request._next_chunk``) and calls back when there are more; here is who
may take them. A body that is there as a whole can be read any number of times; a body in pieces belongs to
the stream that got the first piece. Tests: ``tests/gateway/test_streamed_bodies.py``.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from citius.waiting import called_back, wait_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from citius._core import Request


class BodyStream:
    """A request body as it comes: ``async for`` on the loop, ``for`` in a blocking handler.

    A body that is there as a whole can be read any number of times. One that comes in pieces is
    given away once: the stream that got the first piece has a right to the others, and another stream
    or ``read`` raises ``RuntimeError`` instead of taking a part for the whole.
    """

    __slots__ = ("_request", "_right")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._right = object()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _AsyncPieces(self._request, self._right)

    def __iter__(self) -> Iterator[bytes]:
        pieces = _Pieces(self._request, self._right)
        while True:
            with pieces.intake:
                while (piece := pieces.take()) is None:
                    wait_in_thread(self._request._on_body)  # pyright: ignore[reportPrivateUsage]
            if not piece:
                return
            yield piece


async def read(request: Request) -> bytes:
    """The whole body, awaited; afterwards ``request.body`` and its kin have it too.

    What has come when this is cancelled is kept for the next ``read`` or stream.
    """
    if request not in _intakes:
        try:
            return request.body()
        except RuntimeError:  # it is still on its way
            pass
    intake = _intake_of(request)
    with intake:
        if intake.owner is not None:
            raise RuntimeError(_TAKEN)
        if (whole := intake.whole(request)) is not None:
            return whole
        while (piece := request._next_chunk()) != b"":  # pyright: ignore[reportPrivateUsage]
            if piece is None:
                await called_back(request._on_body)  # pyright: ignore[reportPrivateUsage]
            else:
                intake.kept.append(piece)
        return intake.complete(request)


class _Intake:
    """How far a body has been taken, and by which reader. A reader holds it while it takes (``with``)."""

    __slots__ = ("__weakref__", "_held", "ended", "has_begun", "kept", "owner")

    def __init__(self) -> None:
        self._held = allocate_lock()
        # From here on the request's own idea of its body may be a part of it.
        self.has_begun = False
        # Taken, and not given out yet.
        self.kept: list[bytes] = []
        # The right of the stream that was given a piece, and whether it has had the last one.
        self.owner: object | None = None
        self.ended = False

    def __enter__(self) -> None:
        # Two waiters would share one callback: the first would wait for ever.
        if not self._held.acquire(blocking=False):
            raise RuntimeError("the body of this request is being read by another call")

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def whole(self, request: Request) -> bytes | None:
        """The body, if it need not be taken in pieces."""
        if not self.has_begun:
            try:
                return request.body()
            except RuntimeError:  # it is still on its way
                self.has_begun = True
        return None

    def complete(self, request: Request) -> bytes:
        """Make the pieces that were kept the request's body."""
        whole = b"".join(self.kept)
        self.kept.clear()
        request._set_body(whole)  # pyright: ignore[reportPrivateUsage]
        self.has_begun = False
        return whole


# Values must not refer to their keys, or neither would ever go.
_intakes: WeakKeyDictionary[Request, _Intake] = WeakKeyDictionary()

_TAKEN = (
    "the body of this request has been taken, or a part of it, by an earlier request.stream(), "
    "and is not kept; take it once, or call `await request.read()` first"
)


def _intake_of(request: Request) -> _Intake:
    return _intakes.get(request) or _intakes.setdefault(request, _Intake())


class _Pieces:
    """One iteration over a body."""

    __slots__ = ("_is_over", "_request", "_right", "intake")

    def __init__(self, request: Request, right: object) -> None:
        self._request = request
        self._right = right
        self._is_over = False
        self.intake = _intake_of(request)

    def take(self) -> bytes | None:
        """The next piece; ``b""`` at the end, ``None`` if it has to be waited for."""
        if self._is_over:
            return b""
        intake = self.intake
        if intake.owner is None:
            if (whole := intake.whole(self._request)) is not None:
                self._is_over = True
                return whole
        elif intake.owner is not self._right or intake.ended:
            raise RuntimeError(_TAKEN)
        piece = b"".join(intake.kept) or self._request._next_chunk()  # pyright: ignore[reportPrivateUsage]
        intake.kept.clear()
        if piece:
            intake.owner = self._right
        elif piece is not None:
            self._is_over = intake.ended = True
        return piece


class _AsyncPieces:
    """One iteration over a body on the loop; no generator, for a cancelled wait would end it."""

    __slots__ = ("_pieces", "_request")

    def __init__(self, request: Request, right: object) -> None:
        self._request = request
        self._pieces = _Pieces(request, right)

    def __aiter__(self) -> _AsyncPieces:
        return self

    async def __anext__(self) -> bytes:
        with self._pieces.intake:
            while (piece := self._pieces.take()) is None:
                await called_back(self._request._on_body)  # pyright: ignore[reportPrivateUsage]
        if not piece:
            raise StopAsyncIteration
        return piece
