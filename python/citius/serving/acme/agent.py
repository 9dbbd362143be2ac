"""One round of ``--acme``, in a process of its own: which names are due, and when the next round is.

In: a line of JSON on standard input, which is a ``Task``. Out: lines for the log of the
supervisor, and the seconds until the next round (lines.py). What fails for one
name leaves its certificate as it was, and is tried again later and later: authorities allow few failures in
an hour.
"""

from __future__ import annotations

import sys
import time
from hashlib import sha256
from typing import Any

import msgspec

from citius.process.lifeline import end_with
from citius.serving.acme.lines import finish, say
from citius.serving.acme.store import Store

RETRY_S = 60.0
"""The pause after the first failure; each further one has four times the pause."""

RETRY_S_MAX = 6 * 3600.0

LOOK_S_MAX = 12 * 3600.0
"""How often an authority is asked when it wants its certificates to be renewed (RFC 9773)."""

BUSY_S = 60.0
"""The pause if another process asks for the same names."""


class Task(msgspec.Struct):
    """What the supervisor wants done."""

    names: list[str]
    directory: str
    root: str
    uid: int
    gid: int
    challenges: list[str]
    email: str | None = None
    ca_certs: str | None = None
    binding: tuple[str, str] | None = None
    """Key identifier and key that the authority wants to see for a new account."""
    is_urgent: bool = False
    """Names that have failed are tried at once."""


class Known(msgspec.Struct):
    """What is known of the certificate of a name."""

    directory: str = ""
    """Of the authority that has issued it; empty: none has."""
    renew_at: float = 0.0
    failures: int = 0
    retry_at: float = 0.0
    asked_with: str = ""
    """What had failed: another authority, or another binding, is tried at once."""


def run() -> None:
    """Do what standard input says."""
    task = msgspec.json.decode(sys.stdin.readline(), type=Task)
    # The supervisor has the other end.
    end_with(sys.stdin.fileno(), 0.0)
    store = Store(task.root, task.uid, task.gid)
    with store.locked() as is_alone:
        next_s = _round(task, store) if is_alone else BUSY_S
    finish(next_s)


def _round(task: Task, store: Store) -> float:
    from citius.serving.acme.issuing import Authority, Refused, is_issued

    store.clear_challenges()
    authority: Any = None
    asked_with = sha256(msgspec.json.encode((task.directory, task.binding))).hexdigest()
    next_at = time.time() + LOOK_S_MAX
    for name in task.names:
        known = _known(store, name)
        is_new = known.directory != task.directory or not is_issued(store.certificate(name), name)
        # A pause that is longer than any was set by another clock.
        left_s = known.retry_at - time.time()
        if known.failures and known.asked_with != asked_with:
            known.failures, left_s = 0, 0.0
        if 0 < left_s <= RETRY_S_MAX and not task.is_urgent:
            next_at = min(next_at, known.retry_at)
            times = "once" if known.failures == 1 else f"{known.failures} times"
            say("info", f"acme: {name} has failed {times}; another try in {left_s:.0f} s")
            continue
        said: tuple[str, str] | None = None
        try:
            if authority is None:
                authority = Authority(task, store)
            if not is_new:
                renew_at = authority.renew_at(name)
                known.renew_at = known.renew_at if renew_at is None else renew_at
            if is_new or known.renew_at <= time.time():
                known = Known(task.directory, authority.issue(name))
                when = time.strftime("%Y-%m-%d", time.gmtime(known.renew_at))
                text = f"acme: {name} has a certificate of {task.directory}; it is renewed about {when}"
                said = "info", text
            known.failures, known.retry_at = 0, 0.0
            next_at = min(next_at, known.renew_at)
        except (Refused, OSError, ValueError) as error:
            pause_s = min(RETRY_S_MAX, RETRY_S * 4**known.failures)
            known.failures, known.retry_at = known.failures + 1, time.time() + pause_s
            known.asked_with = asked_with
            next_at = min(next_at, known.retry_at)
            text = (
                f"acme: {name}: {error}; the certificate that is there serves on, another try in "
                f"{pause_s:g} s"
            )
            said = "error", text
        try:
            _remember(store, name, known)
        except OSError as error:
            say("error", f"acme: {name}: what is known of it cannot be kept: {error}")
            next_at = max(next_at, time.time() + RETRY_S)
        if said is not None:
            say(*said)  # it is kept: the server may end now
    return max(1.0, next_at - time.time())


def _known(store: Store, name: str) -> Known:
    try:
        return msgspec.json.decode((store.accounts / f"{name}.json").read_bytes(), type=Known)
    except (OSError, msgspec.MsgspecError):
        return Known()


def _remember(store: Store, name: str, known: Known) -> None:
    path = str(store.accounts / f"{name}.json")
    store.write(path, msgspec.json.encode(known), 0o600, shared=False)


if __name__ == "__main__":
    run()
