"""Whether the kernel has killed a process of ours for want of memory, where it tells: cgroups do."""

from __future__ import annotations

ROOT = "/sys/fs/cgroup"
MEMBERSHIP = "/proc/self/cgroup"


class OutOfMemory:
    """Notices that the kernel has killed a process for want of memory."""

    def __init__(self) -> None:
        self._kills = oom_kills()

    def has_struck(self) -> bool:
        """Whether it has, since this was asked last."""
        before, self._kills = self._kills, oom_kills()
        return before is not None and self._kills is not None and self._kills > before


def oom_kills() -> int | None:
    """How many processes of our cgroup were killed so far; ``None`` where the kernel does not tell."""
    try:
        with open(MEMBERSHIP) as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for _, controllers, group in lines:
        if controllers == "":  # version 2
            places = [f"{ROOT}{group.rstrip('/')}/memory.events", f"{ROOT}/memory.events"]
        elif "memory" in controllers.split(","):
            places = [f"{ROOT}/memory{group.rstrip('/')}/memory.oom_control"]
            places.append(f"{ROOT}/memory/memory.oom_control")  # what a container sees of its own
        else:
            continue
        for place in places:
            if (count := _counted(place)) is not None:
                return count
    return None


def _counted(path: str) -> int | None:
    try:
        with open(path) as file:
            pairs = (line.split() for line in file)
            return next(int(pair[1]) for pair in pairs if pair[0] == "oom_kill")
    except (OSError, StopIteration, ValueError, IndexError):
        return None
