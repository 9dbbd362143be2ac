"""What a figure depends on besides the server: the machine, its kernel, its versions, its load.

``capture`` is written into every result folder; ``CpuTimes`` and ``split_cpus`` serve the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from citius_lab.definitions.contestants import python_text
from citius_lab.paths import PACKAGE, in_checkout, lab_root


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """Seconds that CPUs spent since boot, by kind, and when that was read."""

    at: float
    busy_s: dict[int, float]
    interrupt_s: dict[int, float]
    idle_s: dict[int, float]
    steal_s: dict[int, float]

    @classmethod
    def read(cls) -> CpuTimes:
        """Read ``/proc/stat``."""
        tick_s = 1 / os.sysconf("SC_CLK_TCK")
        busy: dict[int, float] = {}
        interrupt: dict[int, float] = {}
        idle: dict[int, float] = {}
        steal: dict[int, float] = {}
        for line in Path("/proc/stat").read_text().splitlines():
            name, *numbers = line.split()
            if name.startswith("cpu") and name != "cpu":
                cpu = int(name[3:])
                user, nice, system, idle_, wait, irq, softirq, steal_ = (
                    int(number) * tick_s for number in numbers[:8]
                )
                busy[cpu] = user + nice + system
                interrupt[cpu] = irq + softirq
                idle[cpu] = idle_ + wait
                steal[cpu] = steal_
        return cls(time.monotonic(), busy, interrupt, idle, steal)

    def since(self, earlier: CpuTimes) -> dict[str, float]:
        """Return what was spent since ``earlier``, all CPUs together, in seconds."""
        return {
            "elapsed_s": self.at - earlier.at,
            "busy_s": sum(self.busy_s.values()) - sum(earlier.busy_s.values()),
            "interrupt_s": sum(self.interrupt_s.values()) - sum(earlier.interrupt_s.values()),
            "steal_s": sum(self.steal_s.values()) - sum(earlier.steal_s.values()),
        }

    def idle_share(self, earlier: CpuTimes, cpus: list[int]) -> float:
        """Return which share of the time the given CPUs were idle, 0 to 1."""
        idle_s = sum(self.idle_s[cpu] - earlier.idle_s[cpu] for cpu in cpus)
        return max(0.0, min(1.0, idle_s / (len(cpus) * max(self.at - earlier.at, 1e-9))))


def split_cpus(n_workers: int) -> tuple[list[int], list[int]]:
    """Return the CPUs of the server and those of the load generator.

    They are disjoint where there are enough; on a machine with one CPU both get it, and the
    report says so.
    """
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) <= n_workers:
        return cpus, cpus
    return cpus[:n_workers], cpus[n_workers : n_workers + 1]


def foreign_share(seconds: float = 0.5) -> float:
    """Return how many CPUs others keep busy right now."""
    before = CpuTimes.read()
    time.sleep(seconds)
    after = CpuTimes.read()
    return after.since(before)["busy_s"] / seconds


def capture() -> dict[str, Any]:
    """Return the machine, the kernel, the versions and the state of the checkout."""
    return {
        "cpu": _cpu_model(),
        "topology": _topology(),
        "cpus": sorted(os.sched_getaffinity(0)),
        "cpus_online": os.cpu_count(),
        "hypervisor": "hypervisor" in _first_line("/proc/cpuinfo", "flags").split(),
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not exposed",
        "turbo": _turbo(),
        "cgroup": _text("/proc/self/cgroup"),
        "cgroup_cpu_max": _text("/sys/fs/cgroup/cpu.max") or "none",
        "cgroup_memory_max": _text("/sys/fs/cgroup/memory.max") or "none",
        "memory_kib": int(_first_line("/proc/meminfo", "MemTotal").split()[0]),
        "kernel": f"{platform.system()} {platform.release()}",
        "mitigations": _mitigations(),
        "load_average": list(os.getloadavg()),
        "tcp_syncookies": _text("/proc/sys/net/ipv4/tcp_syncookies"),
        "tcp_tw_reuse": _text("/proc/sys/net/ipv4/tcp_tw_reuse"),
        "open_files_max": resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        "somaxconn": _text("/proc/sys/net/core/somaxconn"),
        "network": "loopback",
        "contestants_python": python_text(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "rustc": _output(["rustc", "--version"]),
        "go": _output(["go", "version"]),
        "node": _output(["node", "--version"]),
        "pypy": _output(["pypy3", "--version"]).replace("\n", " "),
        "lab_sha256": _sha256_of_lab(),
        "commit": commit(),
        "lab_command": " ".join(sys.argv),
    }


def _cpu_model() -> str:
    return _first_line("/proc/cpuinfo", "model name") or platform.processor() or "unknown"


def _topology() -> dict[str, str]:
    """Return which CPUs are threads of one core, and which share the last cache."""
    found: dict[str, str] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        folder = Path(f"/sys/devices/system/cpu/cpu{cpu}")
        siblings = _text(folder / "topology" / "thread_siblings_list") or "?"
        caches = sorted(folder.glob("cache/index*/shared_cpu_list"))
        last = _text(caches[-1]) if caches else "?"
        found[f"cpu {cpu}"] = f"core of {siblings}, last cache of {last}"
    return found


def _turbo() -> str:
    no_turbo = _text("/sys/devices/system/cpu/intel_pstate/no_turbo")
    boost = _text("/sys/devices/system/cpu/cpufreq/boost")
    if no_turbo:
        return "off" if no_turbo == "1" else "on"
    return {"1": "on", "0": "off"}.get(boost, "not exposed")


def sha256(path: str | Path) -> str:
    """Return the hash of one file, empty if it cannot be read."""
    with contextlib.suppress(OSError):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return ""


def _sha256_of_lab() -> str:
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return digest.hexdigest()


def _mitigations() -> dict[str, str]:
    folder = Path("/sys/devices/system/cpu/vulnerabilities")
    found = {path.name: _text(path) for path in sorted(folder.glob("*"))}
    return {name: text for name, text in found.items() if text.startswith("Mitigation")}


def commit() -> str:
    """Return the checkout's commit, and whether the tree is another one; empty for an installed lab."""
    if not in_checkout():
        return ""
    root = str(lab_root().parent)
    head = _output(["git", "-C", root, "rev-parse", "--short=12", "HEAD"])
    # Kept results are no code: with them, all but the first of several measurements would count as changed.
    code = ["--", ".", ":(exclude)lab/published"]
    lines = _output(["git", "-C", root, "status", "--porcelain", *code]).splitlines()
    changed = [
        line for line in lines if not line.startswith("??") or line[3:].strip('"').startswith(CODE)
    ]
    return f"{head}{LOCAL_CHANGES}" if head and changed else head


def _output(command: list[str]) -> str:
    if shutil.which(command[0]) is None:
        return ""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""
    return ""


def _first_line(path: str, name: str) -> str:
    for line in _text(path).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def _text(path: str | Path) -> str:
    with contextlib.suppress(OSError):
        return Path(path).read_text().strip()
    return ""


LOCAL_CHANGES = " with local changes"
# A file that is in no commit changes what is measured only where code is read from.
CODE = ("crates/", "python/", "lab/")
