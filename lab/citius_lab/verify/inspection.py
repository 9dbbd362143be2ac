"""Inspects one contestant: are its answers right, and what does a worker weigh?

The finding is kept beside the build, so that ``citius lab list`` can show it. It holds for the
definition and the build it was made of; of anything newer there is no finding.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from citius_lab.definitions import certificate, wires
from citius_lab.definitions.workloads import WrongResponse, contract
from citius_lab.errors import LabError, LaunchError
from citius_lab.processes import launch
from citius_lab.processes.services import Services
from citius_lab.verify import session

if TYPE_CHECKING:
    from pathlib import Path

    from citius_lab.definitions.contestants import Contestant
    from citius_lab.definitions.workloads import Case


@dataclass(frozen=True, slots=True)
class Finding:
    """What an inspection found.

    Attributes:
        faults: What was wrong; empty if the contestant does as the contract says.
        one_worker_kib: PSS of all its processes with one worker, after every case was answered.
        two_workers_kib: The same with two workers; ``None`` if it did not get that far.
    """

    faults: tuple[str, ...]
    one_worker_kib: int | None = None
    two_workers_kib: int | None = None


def inspect(contestant: Contestant) -> Finding:
    """Start it with one worker and with two, check every answer, and keep what was found."""
    contestant.build_dir.mkdir(parents=True, exist_ok=True)
    log_path = contestant.build_dir / f"verify-{contestant.name}.log"
    log_path.unlink(missing_ok=True)
    cases = contract().cases_of(contestant.workloads)
    with Services(()) as services:
        return _inspect(contestant, cases, log_path, services)


def _inspect(
    contestant: Contestant, cases: list[Case], log_path: Path, services: Services
) -> Finding:
    faults: list[str] = []
    weights: list[int | None] = [None, None]
    manner = "plain" if contestant.start else contestant.manner_of(contestant.wires[0])
    if manner == "tls":
        certificate.make(contestant.build_root)
    for index, workers in enumerate((1, 2)):
        try:
            with launch.Server(
                contestant,
                workers=workers,
                cpus=(),
                log_path=log_path,
                manner=manner,
                services=services,
            ) as server:
                if workers == 1 and wires.HTTP1 in contestant.wires:
                    faults += _faults(server.port, cases, contestant.lacks)
                elif wires.HTTP1 in contestant.wires:
                    faults += [
                        f"with {workers} workers: {fault}" for fault in _spread(server.port, cases)
                    ]
                weights[index] = launch.pss_kib(server.pids())
        except LaunchError as error:
            faults.append(str(error) if workers == 1 else f"with {workers} workers: {error}")
            break
    faults += _wire_faults(contestant, cases, log_path, services)
    finding = Finding(tuple(faults), *weights)
    _path(contestant).write_text(
        json.dumps({"fingerprint": _fingerprint(contestant), **asdict(finding)})
    )
    return finding


def last(contestant: Contestant) -> Finding | None:
    """Return what the last inspection of this very definition and build found, if there was one."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        table = json.loads(_path(contestant).read_text())
        if table.pop("fingerprint") == _fingerprint(contestant):
            return Finding(tuple(table.pop("faults")), **table)
    return None


def _faults(port: int, cases: list[Case], lacks: tuple[str, ...]) -> list[str]:
    faults = _case_faults(port, cases, wires.HTTP1)
    conduct = session.verify_conduct(port, cases).faults()
    for item in lacks:
        if conduct.pop(item, None) is None:
            faults.append(f"{item}: the definition says it lacks this, and it does not")
    return faults + [f"{item.replace('_', ' ')}: {fault}" for item, fault in conduct.items()]


def _wire_faults(
    contestant: Contestant, cases: list[Case], log_path: Path, services: Services
) -> list[str]:
    """Ask every case over everything that it speaks besides plain HTTP/1.1."""
    spoken = [wire for wire in contestant.wires if wire != wires.HTTP1]
    faults: list[str] = []
    for manner in dict.fromkeys(map(contestant.manner_of, spoken)):
        try:
            if manner == "tls":
                certificate.make(contestant.build_root)
            with launch.Server(
                contestant,
                workers=1,
                cpus=(),
                log_path=log_path,
                manner=manner,
                services=services,
            ) as server:
                for wire in spoken:
                    if contestant.manner_of(wire) == manner:
                        asked = (
                            cases if wire not in (wires.RPC, wires.RPC_QUIC) else _procedures(cases)
                        )
                        faults += _case_faults(server.port, asked, wire)
        except LabError as error:
            faults.append(f"{manner}: {error}")
    return faults


def _procedures(cases: list[Case]) -> list[Case]:
    return [case for case in cases if contract().workloads[case.workload].is_procedure]


def _case_faults(port: int, cases: list[Case], wire: str) -> list[str]:
    faults: list[str] = []
    for case in cases:
        try:
            session.verify_case(port, case, random.Random(), wire=wire)
        except (OSError, WrongResponse) as error:
            faults.append(f"{case.id}{'' if wire == wires.HTTP1 else f', {wire}'}: {error}")
    return faults


def _spread(port: int, cases: list[Case]) -> list[str]:
    """Ask every quick case on several connections, so that each of two workers has its turn."""
    faults: set[str] = set()
    for case in cases:
        for _ in range(CONNECTIONS if contract().workloads[case.workload].is_quick else 1):
            try:
                with contextlib.closing(session.Connection(port)) as connection:
                    case.check(connection.ask(case.target, case))
            except (OSError, WrongResponse) as error:
                faults.add(f"{case.id}: {error}")
    return sorted(faults)


def _path(contestant: Contestant) -> Path:
    return contestant.build_dir / f"verify-{contestant.name}.json"


def _fingerprint(contestant: Contestant) -> str:
    definition = b"".join(
        path.read_bytes()
        for path in sorted(contestant.source.rglob("*"))
        if path.is_file() and not {"__pycache__", "target"} & set(path.parts)
    )
    return hashlib.sha256(contestant.fingerprint().encode() + definition).hexdigest()


# Two listeners on one port get connections at random; with eight for every case both workers have
# done everything by the end, in all but one of some hundred inspections.
CONNECTIONS = 8
