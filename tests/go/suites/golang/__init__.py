"""pygolang's names on citius.go, for scripts/pygolang-suite: nothing but a translation of calls.

What pygolang has and Citius has otherwise: a method of a channel names a case of `select`; typed channels
that are closed give zeros; `_PanicError` is the exception of everything; a nil channel is an object, not
`None`.
"""

# pyright: basic

import types
from typing import Any

import citius.go
from citius.errors import ChannelClosed

default = object()
DTYPES: dict[str, tuple[Any, Any]] = {
    "object": (None, None),
    "C.structZ": (types.NoneType, None),
    "C.bool": (bool, False),
    "C.int": (int, 0),
    "C.double": (float, 0.0),
}


class _PanicError(Exception):
    pass


def panic(argument: Any) -> None:
    raise _PanicError(argument)


def go(function: Any, *arguments: Any, **named: Any) -> None:
    citius.go.go(function, *arguments, **named)


class chan:  # noqa: N801 - pygolang's name
    """A channel of Citius' below pygolang's methods."""

    def __init__(self, size: int = 0, dtype: str = "object") -> None:
        if dtype not in DTYPES:
            raise TypeError(f"pychan: invalid dtype: {dtype!r}")
        type_, self._zero = DTYPES[dtype]
        self._dtype = dtype
        self._chan: Any = citius.go.chan(size, type=type_)

    @staticmethod
    def nil(dtype: str) -> Any:
        return NILS[dtype]

    def send(self, value: Any) -> None:
        try:
            self._chan.send(value)
        except ChannelClosed:
            panic("send on closed channel")

    def recv_(self) -> tuple[Any, bool]:
        return self._received(*self._chan.recv())

    def recv(self) -> Any:
        return self.recv_()[0]

    def _received(self, value: Any, ok: bool) -> tuple[Any, bool]:
        return (value, True) if ok else (self._zero, False)

    def close(self) -> None:
        try:
            self._chan.close()
        except ChannelClosed:
            panic("close of closed channel")

    def __len__(self) -> int:
        return len(self._chan)


class _nil(chan):  # noqa: N801 - as above
    def __init__(self, dtype: str) -> None:
        super().__init__(0, dtype)
        self._chan = None

    def send(self, value: Any) -> None:
        select((self.send, value))

    def recv_(self) -> tuple[Any, bool]:
        return select(self.recv_)[1]

    def recv(self) -> Any:
        return self.recv_()[0]

    def close(self) -> None:
        panic("close of nil channel")

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "nilchan" if self._dtype == "object" else f"chan.nil({self._dtype!r})"

    def __hash__(self) -> int:
        return hash(None)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _nil):
            return False
        return self._dtype == other._dtype or "object" in (self._dtype, other._dtype)


NILS = {dtype: _nil(dtype) for dtype in DTYPES}
nilchan = NILS["object"]


def _chan_of(case: Any) -> Any:
    return (case[0] if isinstance(case, tuple) else case).__self__._chan


def select(*cases: Any) -> tuple[int, Any]:
    # All channels first: a traceback of what is no case must not hold the values of the others.
    chans = [None if case is default else _chan_of(case) for case in cases]
    translated = [
        (channel, case[1]) if isinstance(case, tuple) else channel
        for channel, case in zip(chans, cases, strict=True)
        if case is not default
    ]
    has_default = default in cases
    try:
        chosen, value, ok = citius.go.select(*translated, default=has_default)
    except ChannelClosed:
        panic("send on closed channel")
    if chosen is None:
        return cases.index(default), None
    # The default is no case of Citius'.
    at = chosen + (has_default and cases.index(default) <= chosen)
    if isinstance(cases[at], tuple):
        return at, None
    method = cases[at]
    received = method.__self__._received(value, ok)
    return at, received if method.__name__ == "recv_" else received[0]


def not_here(*_: Any) -> Any:
    """Names that golang_test.py imports for tests of other things than channels."""
    raise NotImplementedError("pygolang's, and not of channels")


func = defer = recover = u = b = not_here
