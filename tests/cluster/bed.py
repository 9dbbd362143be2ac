"""Network namespaces as machines: a network in front (clients, balancer, nodes), one behind (engines).

Each machine has a link to either network. A link can be cut, which both ends learn from silence only,
and made slow and lossy: by netem where the kernel has it, else by a cable in user space (cable.py).
Needs root and iproute2; everything is in namespaces named after this process, and goes with `close`.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rig import wait_for

FRONT, BACK = "10.77.1", "10.77.2"
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def why_not() -> str:
    """Why there can be no bed here; empty if there can."""
    if os.geteuid():
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "iproute2 is not installed"
    name = f"citius-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True)
    if made.returncode:
        return "this machine gives no network namespaces"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


def has_netem() -> bool:
    """Whether the kernel delays packets by itself."""
    name = f"citius-{os.getpid()}-netem"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        command = ["ip", "netns", "exec", name, "tc", "qdisc", "add", "dev", "lo", "root", "netem"]
        return subprocess.run([*command, "delay", "1ms"], capture_output=True).returncode == 0
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


class Machine:
    """A namespace with a link to each network."""

    def __init__(self, bed: Bed, name: str, number: int) -> None:
        self.bed = bed
        self.namespace = f"{bed.prefix}-{name}"
        self.front = f"{FRONT}.{number}"
        self.back = f"{BACK}.{number}"
        self.number = number
        self._cable: subprocess.Popen[bytes] | None = None
        self._delay_file: Path | None = None
        _ip("netns", "add", self.namespace)
        _ip("-n", self.namespace, "link", "set", "lo", "up")
        self._join("front", self.front)
        self._join("back", self.back)

    def _join(self, network: str, address: str) -> None:
        ours, its = f"{network}{self.number}", network
        switch = self.bed.switch
        _ip(
            "-n",
            switch,
            "link",
            "add",
            ours,
            "type",
            "veth",
            "peer",
            "name",
            its,
            "netns",
            self.namespace,
        )
        _ip("-n", switch, "link", "set", ours, "master", network, "up")
        _ip("-n", self.namespace, "address", "add", f"{address}/24", "dev", its)
        _ip("-n", self.namespace, "link", "set", its, "up")

    def popen(self, command: list[str], **options: object) -> subprocess.Popen[bytes]:
        """Start a program on this machine."""
        return subprocess.Popen(["ip", "netns", "exec", self.namespace, *command], **options)  # type: ignore[call-overload]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Sockets that this thread makes are this machine's."""
        with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{self.namespace}") as here:
            _setns(here.fileno())
            try:
                yield
            finally:
                _setns(home.fileno())

    def cut(self, network: str = "back") -> None:
        """Nothing passes its link any more."""
        _ip("-n", self.bed.switch, "link", "set", f"{network}{self.number}", "nomaster")

    def mend(self, network: str = "back") -> None:
        """It does again."""
        _ip("-n", self.bed.switch, "link", "set", f"{network}{self.number}", "master", network)

    def slow(self, delay_ms: float = 0, loss_percent: float = 0) -> None:
        """Delay what passes its link to the network behind, in both directions, and lose some of it."""
        if self.bed.has_netem:
            for namespace, device in (
                (self.namespace, "back"),
                (self.bed.switch, f"back{self.number}"),
            ):
                netem = ["netem", "delay", f"{delay_ms}ms", "loss", f"{loss_percent}%"]
                subprocess.run(
                    ["ip", "netns", "exec", namespace, "tc", "qdisc", "replace", "dev", device, "root",
                     *netem],
                    check=True,
                )  # fmt: skip
            return
        if self._cable is None:
            self._lay_cable()
        assert self._delay_file is not None, "the cable has one"
        self._delay_file.write_text(f"{delay_ms} {loss_percent}")

    def _lay_cable(self) -> None:
        """Put a cable in the place of the link to the network behind."""
        _ip("-n", self.bed.switch, "link", "del", f"back{self.number}")
        self._delay_file = self.bed.directory / f"cable-{self.number}"
        self._delay_file.write_text("0 0")
        program = str(Path(__file__).with_name("cable.py"))
        names = [f"back{self.number}", self.bed.switch, "back", self.namespace]
        self._cable = subprocess.Popen(
            [sys.executable, program, *names, str(self._delay_file)], stdout=subprocess.PIPE
        )
        assert self._cable.stdout is not None
        assert self._cable.stdout.readline() == b"ready\n"
        _ip("-n", self.bed.switch, "link", "set", f"back{self.number}", "master", "back", "up")
        _ip("-n", self.namespace, "address", "add", f"{self.back}/24", "dev", "back")
        _ip("-n", self.namespace, "link", "set", "back", "up")

    def close(self) -> None:
        if self._cable is not None:
            self._cable.kill()
            self._cable.wait()
            assert self._cable.stdout is not None
            self._cable.stdout.close()
        _ip("netns", "del", self.namespace)


class Bed:
    """The networks and their machines."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.prefix = f"citius-{os.getpid()}"
        self.switch = f"{self.prefix}-switch"
        self.has_netem = has_netem()
        self._machines: list[Machine] = []
        _ip("netns", "add", self.switch)
        for network in ("front", "back"):
            _ip("-n", self.switch, "link", "add", network, "type", "bridge", "forward_delay", "0")
            _ip("-n", self.switch, "link", "set", network, "up")

    def machine(self, name: str) -> Machine:
        """A new machine."""
        made = Machine(self, name, len(self._machines) + 1)
        self._machines.append(made)
        return made

    def close(self) -> None:
        for machine in self._machines:
            machine.close()
        _ip("netns", "del", self.switch)


class Program:
    """A program on a machine, with its log in a file."""

    def __init__(
        self, machine: Machine, command: list[str], log: Path, env: dict[str, str] | None = None
    ) -> None:
        self.log = log
        with open(log, "ab") as file:
            self.process = machine.popen(
                command, stdout=file, stderr=file, env={**os.environ, **(env or {})}
            )

    def wait_for(self, text: str) -> Program:
        """Wait until it has said so."""

        def is_said() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return text in self.log.read_text()

        wait_for(is_said, text)
        return self

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(20)


def start_dask(
    programs: list[Program],
    scheduler: Machine,
    workers: list[Machine],
    directory: Path,
    env: dict[str, str],
) -> str:
    """Start a scheduler and a worker on each machine, of one thread; return the scheduler's address.

    What has started is in ``programs`` at once, so that a test can close it if the next one does not start.
    """
    address = f"tcp://{scheduler.back}:8786"
    run = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        scheduler.back,
        "--no-dashboard",
    ]
    programs.append(Program(scheduler, run, directory / "scheduler.log", env))
    programs[-1].wait_for("Scheduler at")
    for machine in workers:
        work = [
            sys.executable, "-m", "distributed.cli.dask_worker", address, "--host", machine.back,
            "--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(directory),
        ]  # fmt: skip
        programs.append(Program(machine, work, directory / f"{machine.back}.log", env))
        programs[-1].wait_for("Registered to")
    return address


def _setns(fd: int) -> None:
    if _libc.setns(fd, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"
