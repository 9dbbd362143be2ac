"""Reads what the network of one machine carries, and says which of its limits was reached.

Readings are taken on the contestants' host and on each generator's, at the two ends of a run. They
are those of the network namespace of the process, so that namespaces are told apart like machines.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

Counters = dict[str, int]


def read() -> dict[str, Any]:
    """Return the counters of devices (no loopback), of connection tracking and of the kernel's queues."""
    devices: dict[str, Counters] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/net/dev").read_text().splitlines()[2:]:
            name, _, numbers = line.partition(":")
            if (name := name.strip()) != "lo":
                values = [int(number) for number in numbers.split()]
                devices[name] = dict(zip(DEVICE, (values[at] for at in DEVICE_AT), strict=True))
                devices[name]["mbit"] = _speed_mbit(name)
                devices[name] |= _allowances(name)
    return {
        "at_s": time.monotonic(),
        "devices": devices,
        "tracked": _number("/proc/sys/net/netfilter/nf_conntrack_count"),
        "tracked_max": _number("/proc/sys/net/netfilter/nf_conntrack_max"),
        "untracked": _sum_of_columns("/proc/self/net/stat/nf_conntrack", CONNTRACK_LOST),
        "backlog_dropped": _backlog_dropped(),
    }


def between(begin: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """Return what happened between two readings: rates of each device, and what was lost."""
    elapsed_s = max(end["at_s"] - begin["at_s"], 1e-9)
    devices: dict[str, dict[str, float]] = {}
    for name, last in end["devices"].items():
        if (first := begin["devices"].get(name)) is None:
            continue
        moved = {key: last[key] - first.get(key, 0) for key in last if key != "mbit"}
        devices[name] = {
            "mbit": last["mbit"],
            "rx_mbit_per_s": moved["rx_bytes"] * 8e-6 / elapsed_s,
            "tx_mbit_per_s": moved["tx_bytes"] * 8e-6 / elapsed_s,
            "packets_per_s": (moved["rx_packets"] + moved["tx_packets"]) / elapsed_s,
            "packets": moved["rx_packets"] + moved["tx_packets"],
            "dropped": moved["rx_dropped"] + moved["tx_dropped"],
        } | {key: moved[key] for key in moved if key.endswith(ALLOWANCE)}
    return {
        "elapsed_s": elapsed_s,
        "devices": devices,
        "tracked": max(begin["tracked"], end["tracked"]),
        "tracked_max": end["tracked_max"],
        "untracked": end["untracked"] - begin["untracked"],
        "backlog_dropped": end["backlog_dropped"] - begin["backlog_dropped"],
    }


def limits(found: dict[str, Any], *, link_mbit: float | None = None) -> list[str]:
    """Return which limits of the network were reached, in words.

    Args:
        found: What ``between`` returned.
        link_mbit: What the link carries, in Mbit/s, where the device does not know.
    """
    said: list[str] = []
    for name, device in found["devices"].items():
        link = link_mbit or device["mbit"]
        for way in ("rx", "tx"):
            if link > 0 and device[f"{way}_mbit_per_s"] >= BANDWIDTH_MAX * link:
                carried = device[f"{way}_mbit_per_s"]
                said.append(f"bandwidth of {name}: {way} {carried:.0f} of {link:g} Mbit/s")
        if device["dropped"] > DROPPED_MAX * max(device["packets"], 1):
            rate = device["packets_per_s"]
            said.append(
                f"packets per second of {name}: {device['dropped']} dropped at {rate:.0f}/s"
            )
        said += [
            f"{key.removesuffix(ALLOWANCE)} allowance of {name}: exceeded {device[key]} times"
            for key in device
            if key.endswith(ALLOWANCE) and device[key]
        ]
    packets = sum(device["packets"] for device in found["devices"].values())
    if found["backlog_dropped"] > DROPPED_MAX * max(packets, 1):
        count = found["backlog_dropped"]
        said.append(f"packets per second: {count} dropped by full queues of the kernel")
    if found["untracked"]:
        said.append(f"connection tracking: {found['untracked']} packets dropped")
    if found["tracked_max"] and found["tracked"] >= TRACKED_MAX * found["tracked_max"]:
        said.append(f"connection tracking: {found['tracked']} of {found['tracked_max']} entries")
    return said


def _speed_mbit(device: str) -> int:
    """Return what a physical device says of its link; 0 if it does not know, or is virtual."""
    if not Path("/sys/class/net", device, "device").exists():
        return 0
    return max(0, _number(f"/sys/class/net/{device}/speed"))


def _allowances(device: str) -> Counters:
    """Return how often a cloud's own limits were exceeded, where the driver counts that (ENA does)."""
    if shutil.which("ethtool") is None or not Path("/sys/class/net", device, "device").exists():
        return {}
    found: Counters = {}
    with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
        words = ["ethtool", "-S", device]
        done = subprocess.run(words, capture_output=True, text=True, timeout=2, check=True)
        for line in done.stdout.splitlines():
            name, _, value = line.strip().partition(":")
            if name.endswith(ALLOWANCE):
                found[name] = int(value)
    return found


def _number(path: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int(Path(path).read_text())
    return 0


def _sum_of_columns(path: str, names: tuple[str, ...]) -> int:
    """Return the sum over processors of hexadecimal columns."""
    with contextlib.suppress(OSError, ValueError):
        head, *rows = Path(path).read_text().splitlines()
        at = [place for place, name in enumerate(head.split()) if name in names]
        return sum(int(row.split()[place], 16) for row in rows for place in at)
    return 0


def _backlog_dropped() -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        rows = Path("/proc/self/net/softnet_stat").read_text().splitlines()
        return sum(int(row.split()[1], 16) for row in rows)
    return 0


def host_name() -> str:
    """Return what this machine calls itself."""
    return os.uname().nodename


# Columns of /proc/net/dev.
DEVICE = ("rx_bytes", "rx_packets", "rx_dropped", "tx_bytes", "tx_packets", "tx_dropped")
DEVICE_AT = (0, 1, 3, 8, 9, 11)
CONNTRACK_LOST = ("drop", "early_drop", "insert_failed")
ALLOWANCE = "_allowance_exceeded"
# TCP over Ethernet fills 94 % to 97 % of a link with bytes that the device counts.
BANDWIDTH_MAX = 0.90
DROPPED_MAX = 0.001
TRACKED_MAX = 0.95
