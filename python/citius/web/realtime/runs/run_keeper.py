"""``RunKeeper``: the runs of an application in this process, and its readers of any run.

A run ends by its generator, by DELETE, by its time, or because nothing has read it for a while; if its worker
stops or is killed, its readers are told so: the end is in the store before the worker leaves, or is written
by the first worker that finds the other one gone. Who reads in another worker is told over the bus, again and
again, so that a worker that is killed counts as a reader for :data:`FOLLOWS_S` at most. Tests:
``tests/runs/``.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakSet

from citius.cluster.engines import EngineAway
from citius.cluster.runstores import TableRuns
from citius.errors import ServiceUnavailable, TooManyRequests
from citius.observability.logging import log_exception
from citius.web.realtime.broadcast import closed_with_broadcasts
from citius.web.realtime.bus import Bus
from citius.web.realtime.runs.run_tasks import CLOSE_S, Follower, Run, RunLimits, end_event

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Task
    from collections.abc import AsyncIterator

    from citius.cluster.runstores import RunRecord, RunStore
    from citius.web.application.app import App

TICK_S: Final = 1.0
"""How often runs are looked after."""
FOLLOWS_S: Final = 5.0
"""How long a worker is taken to read a run that has not said so again. Origin: it says so every second."""


class RunKeeper:
    """The runs of an application in this process, and its readers of any."""

    def __init__(self, app: App) -> None:
        self._app = app
        self.store: RunStore
        self.worker = ""
        self.bus = Bus(self._heard)
        self.is_draining = False
        self.spread_s = 0.0
        """Within which time readers come back that a drain has sent away."""
        self._runs: dict[str, Run] = {}
        self._counts: Counter[str] = Counter()
        """Runs of each kind, which do not take one another's places."""
        self._followers: dict[str, set[Follower]] = {}
        self._ends: dict[str, tuple[str, bytes, float, int]] = {}
        """Ends that the store has not taken yet."""
        self._undone: dict[str, str] = {}
        """Runs that have not begun, with their owners, which the store has not forgotten yet."""
        self._forgetting: set[Task[None]] = set()
        self._lock = threading.Lock()
        self._tickers: dict[AbstractEventLoop, Task[None]] = {}

    def open(self) -> None:
        """Find the store, when the application is frozen."""
        cluster = self._app.cluster
        if cluster is not None:
            self.store = cluster.runs()
        else:
            from citius.process.sharedtable import shared_table

            self.store = TableRuns(shared_table("runs"))
        self.worker = secrets.token_hex(12)
        self.is_draining = False
        closed_with_broadcasts(self)
        _keepers.add(self)

    @property
    def count(self) -> int:
        """How many there are in this process."""
        return len(self._runs)

    # --- begin and end ------------------------------------------------------------------------------------

    async def begin(
        self,
        record: RunRecord,
        limits: RunLimits,
        events: AsyncIterator[object],
        what: str,
        *,
        claim: tuple[str, str] | None = None,
    ) -> str:
        """Begin a run; its identifier, empty if another run has the claim.

        Args:
            record: Who begins it, and where.
            limits: What bounds it.
            events: What it yields.
            what: What logs call it.
            claim: A key that no other run may have, and what is kept with it.

        Raises:
            HTTPError: There are too many.
        """
        if self.is_draining:
            raise ServiceUnavailable("the server is stopping", {"retry-after": "1"})
        if self._counts[limits.kind] >= limits.runs_max:
            raise ServiceUnavailable("too many runs", {"retry-after": "1"})
        identifier = secrets.token_urlsafe(18)
        record.worker = self.worker
        run = self._runs[identifier] = Run(self, identifier, record, limits, what)
        self._counts[limits.kind] += 1
        ttl_s = limits.lasts_s + limits.keep_s
        try:
            await self.store.renew(self.worker)
            await self.store.create(identifier, record, ttl_s)
            if record.owner:
                await self._reserve(record.owner, identifier, limits)
            if claim is not None:
                key, more = claim
                mine = f"{identifier} {more}"
                if await self.store.claim(key, mine, ttl_s) != mine:
                    await self._undo(identifier, record)
                    return ""
        except BaseException as error:
            await self._undo(identifier, record)
            if isinstance(error, EngineAway):
                raise ServiceUnavailable("runs cannot be kept now", {"retry-after": "1"}) from None
            raise
        run.task = run.loop.create_task(run.go(events), name=f"citius-run {what}")
        self.attend()
        return identifier

    def _drop(self, identifier: str) -> None:
        run = self._runs.pop(identifier, None)
        if run is not None:
            self._counts[run.limits.kind] -= 1

    async def _undo(self, run: str, record: RunRecord) -> None:
        """Take a run back that cannot begin, sooner or later: it would count as one of its owner's."""
        self._drop(run)
        self._undone[run] = record.owner
        try:
            with suppress(EngineAway):
                await self._forget_undone()
        finally:
            if self._undone:
                self.attend()

    async def _forget_undone(self) -> None:
        for run, owner in list(self._undone.items()):
            await self.store.forget(run)
            if owner:
                await self.store.release(owner, run)
            self._undone.pop(run, None)

    async def _reserve(self, owner: str, run: str, limits: RunLimits) -> None:
        """Count a run of an owner; those that are over, or whose worker is gone, count no more.

        Raises:
            TooManyRequests: It has too many.
        """
        ttl_s = limits.lasts_s + limits.keep_s
        for is_last in (False, True):
            others = await self.store.reserve(owner, run, limits.owner_runs_max, ttl_s)
            if others is None:
                return
            if is_last:
                break
            for other in others:
                if not await self.is_running(other):
                    await self.store.release(owner, other)
        raise TooManyRequests(
            f"{limits.owner_runs_max} runs are under way; wait for one of them or cancel it",
            {"retry-after": "1"},
        )

    async def claimed(self, key: str) -> str | None:
        """What has a claim; one of a run that is not there ends: it could not begin, or is kept no longer."""
        found = await self.store.claimed(key)
        if found is None or await self.store.find(found.partition(" ")[0]) is not None:
            return found
        await self.store.unclaim(key, found)
        return None

    async def is_running(self, run: str) -> bool:
        """Whether a run goes on; one whose worker is gone is ended."""
        record = await self.store.find(run)
        if record is None or record.is_over:
            return False
        if await self.store.is_alive(record.worker):
            return True
        # Its worker cannot do it.
        event = end_event("cut_off", reason="worker_lost")
        if await self.store.end(run, "cut_off", event, record.keep_s):
            self.wake(run)
            self.bus.send({"more": run})
        return False

    async def cancel(self, run: str, record: RunRecord) -> None:
        """End a run of any worker, because its owner wants that."""
        own = self._runs.get(run)
        if own is not None:
            own.stop("cancelled", "client")
        event = end_event("cancelled", reason="client")
        await self.store.end(run, "cancelled", event, record.keep_s)
        if record.owner:
            await self.store.release(record.owner, run)
        self.wake(run)
        self.bus.send({"stop": run})

    async def finish(self, run: Run, state: str, event: bytes) -> None:
        """Keep the end of a run of this process."""
        self._ends[run.identifier] = state, event, run.limits.keep_s, run.record.last
        await self._keep_ends()
        await self.left(run)

    async def left(self, run: Run) -> None:
        """Forget a run of this process, which is over."""
        run.tell()
        self._drop(run.identifier)
        if run.record.owner:
            with suppress(EngineAway):
                await self.store.release(run.record.owner, run.identifier)
        if isinstance(self.store, TableRuns):
            # Values that nothing forgets displace others.
            run.loop.call_later(run.limits.keep_s, self._forget, run.identifier)

    def _forget(self, run: str) -> None:
        task = asyncio.get_running_loop().create_task(self.store.forget(run))
        self._forgetting.add(task)
        task.add_done_callback(self._forgetting.discard)

    async def _keep_ends(self) -> None:
        for run, (state, event, keep_s, last) in list(self._ends.items()):
            try:
                await self.store.end(run, state, event, keep_s, last)
            except EngineAway:
                return
            self._ends.pop(run, None)
            self.wake(run)
            self.bus.send({"more": run})

    # --- readers ----------------------------------------------------------------------------------

    def follow(self, run: str) -> Follower:
        """Have a reader told of what comes."""
        follower = Follower()
        with self._lock:
            self._followers.setdefault(run, set()).add(follower)
        self.attend()
        if run not in self._runs:
            self.bus.send({"follow": run, "by": self.worker})
        return follower

    def unfollow(self, run: str, follower: Follower) -> None:
        """The reader has left."""
        with self._lock:
            left = self._followers.get(run, set())
            left.discard(follower)
            if not left:
                self._followers.pop(run, None)
        own = self._runs.get(run)
        if own is not None:
            own.read_at = own.loop.time()
        elif not left:
            self.bus.send({"unfollow": run, "by": self.worker})

    def has_followers(self, run: str) -> bool:
        """Whether a reader of this process follows."""
        return run in self._followers

    def wake(self, run: str) -> None:
        """Tell the readers here that there is more."""
        if run in self._followers:
            with self._lock:
                followers = list(self._followers.get(run, ()))
            for follower in followers:
                follower.tell()

    def _heard(self, said: dict[str, Any]) -> None:
        """What another worker has said."""
        if "more" in said:
            self.wake(said["more"])
            return
        run = self._runs.get(said.get("follow") or said.get("unfollow") or said.get("stop") or "")
        if run is None:
            return
        if "stop" in said:
            run.stop("cancelled", "client")
        elif "follow" in said:
            run.remote[said["by"]] = run.loop.time() + FOLLOWS_S
        else:
            run.remote.pop(said["by"], None)
            run.read_at = run.loop.time()

    # --- time -------------------------------------------------------------------------------------

    def attend(self) -> None:
        """Look after runs and readers from now on, on this loop."""
        loop = asyncio.get_running_loop()
        self.bus.attach(loop)
        ticker = self._tickers.get(loop)
        if ticker is None or ticker.done():
            self._tickers[loop] = loop.create_task(self._tick(loop), name="citius-runs")

    async def _tick(self, loop: AbstractEventLoop) -> None:
        while self._runs or self._followers or self._ends or self._undone:
            await asyncio.sleep(TICK_S)
            try:
                await self._look(loop)
            except EngineAway:
                continue
            except Exception as error:
                log_exception("looking after runs failed", error)

    async def _look(self, loop: AbstractEventLoop) -> None:
        now = loop.time()
        own = [run for run in list(self._runs.values()) if run.loop is loop]
        for run in own:
            run.remote = {by: until for by, until in run.remote.items() if until > now}
            run.look(now)
        for followed in list(self._followers):
            if followed not in self._runs:
                self.bus.send({"follow": followed, "by": self.worker})
        if own or self._ends:
            await self.store.renew(self.worker)
            await self._keep_ends()
        await self._forget_undone()
        for run in own:
            # Another worker may have ended it, because this one has stood still for long.
            record = await self.store.find(run.identifier)
            if (record is None or record.is_over) and run.identifier in self._runs:
                run.stop("cut_off", "lost")

    # --- stop -------------------------------------------------------------------------------------

    def close(self, spread_s: float = 0.0) -> None:
        """Send readers elsewhere, and begin no further runs, as before a shutdown."""
        self.is_draining, self.spread_s = True, spread_s
        for run in list(self._followers):
            self.wake(run)

    async def stop(self) -> None:
        """Cut off what still runs on this loop; its readers are told."""
        self.close()
        loop = asyncio.get_running_loop()
        own = [run for run in list(self._runs.values()) if run.loop is loop]
        for run in own:
            run.stop("cut_off", "shutdown")
        tasks = [run.task for run in own if run.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_S)
        ticker = self._tickers.pop(loop, None)
        if ticker is not None:
            ticker.cancel()
            await asyncio.wait([ticker])


_keepers: WeakSet[RunKeeper] = WeakSet()


def keeper_of(app: App) -> RunKeeper:
    """What keeps the runs of an application and of those that are mounted in it, ready to be used.

    Args:
        app: The outermost application, whose cluster has them.
    """
    keeper = app.run_keeper
    if keeper is None:
        keeper = RunKeeper(app)
        app.set_run_keeper(keeper)
    keeper.open()
    return keeper


def running_in_process() -> int:
    """Runs of this process."""
    return sum(keeper.count for keeper in list(_keepers))


async def cut_off_all() -> None:
    """Cut off all runs of this loop, before what they use is stopped."""
    for keeper in list(_keepers):
        await keeper.stop()
