"""The environment variable by which a server passes its listening sockets to the next one.

Used by reload and USR2. ``HANDOVER_ENV`` holds JSON: ``listeners`` (descriptors by address); for USR2
``ready``, a descriptor to which the new server writes a byte when it serves; for a reload ``life``, a
descriptor that hangs up when the reloader ends; for HTTP/3 ``datagrams`` (``datagrams.hand_over``).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from citius.errors import ConfigError
from citius.process.startup import HANDOVER_ENV

if TYPE_CHECKING:
    from citius.serving.datagrams import Handings
    from citius.serving.listeners import Listeners


def handover(
    listeners: Listeners,
    *,
    ready_fd: int | None = None,
    life_fd: int | None = None,
    slots: dict[int, Handings] | None = None,
) -> tuple[str, list[int]]:
    """The value of ``HANDOVER_ENV`` for the next process, and the descriptors that it must inherit."""
    import json

    by_text = {
        listener.text: [made.fileno() for made in listener.sockets if made.fileno() >= 0]
        for listener in listeners.all
    }
    value: dict[str, Any] = {"listeners": by_text}
    fds = [fd for fds in by_text.values() for fd in fds]
    if listeners.datagrams is not None:
        from citius.serving.datagrams import hand_over

        value["datagrams"], more = hand_over(listeners.datagrams, slots or {})
        fds += more
    for name, fd in (("ready", ready_fd), ("life", life_fd)):
        if fd is not None:
            value[name] = fd
            fds.append(fd)
    return json.dumps(value), fds


def handed_over() -> dict[str, Any]:
    """Read and remove the variable; empty without one.

    Raises:
        ConfigError: Its value is invalid, or names a descriptor that is not open.
    """
    text = os.environ.pop(HANDOVER_ENV, "")
    if not text:
        return {}
    import json

    try:
        handed = json.loads(text)
        listeners = handed.get("listeners", {})
        fds = [
            handed.get("ready", -1),
            handed.get("life", -1),
            *(fd for fds in listeners.values() for fd in fds),
        ]
        for fd in fds:
            if fd != -1:
                os.fstat(fd)
    except (ValueError, TypeError, AttributeError, OSError) as error:
        raise ConfigError(
            f"{HANDOVER_ENV}: not what a Citius process hands to the next one ({error}); unset it"
        ) from None
    return handed
