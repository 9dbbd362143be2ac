"""What stands behind the figures: contestants, commands, machine, doubts, and what is not shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citius_lab.judge.figures import FAILED, SUSPECT
from citius_lab.report import words
from citius_lab.report.sections import generators

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from citius_lab.report.view import View


@dataclass(frozen=True, slots=True)
class Card:
    """A contestant's definition: what was run, out of what, and what it weighs."""

    name: str
    label: str
    note: str
    pairs: tuple[tuple[str, str], ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reason:
    """Why figures are not to be relied on, and which; a sentence of its own without ``places``."""

    text: str
    places: tuple[str, ...] | None = None

    @property
    def is_long(self) -> bool:
        """Whether its places are folded."""
        return self.places is not None and len(self.places) > FEW


# --- contestants ----------------------------------------------------------------------------------


def cards(view: View) -> list[Card]:
    """Return every contestant's definition."""
    return [_card(view, name) for name in view.analysis.contestants]


def _card(view: View, name: str) -> Card:
    entry = view.entry(name)
    pairs = [
        ("language", entry["language"]),
        ("JSON", entry["json"]),
        ("records as", entry["records"]),
        ("rules", RULES.get(entry["rules"], entry["rules"])),
        ("a worker is", {"processes": "a process", "threads": "a thread"}.get(entry.get("workers", ""))),
        ("does without", ", ".join(entry.get("lacks", ()))),
        ("lines of code", _app_lines(entry)),
        ("version", entry["version"]),
        ("memory", memory(view, name)),
        ("accepts after", _ready(view, name)),
        ("defined by", None if entry["maintainer"] == "lab" else entry["maintainer"]),
    ]  # fmt: skip
    given = tuple((key, value) for key, value in pairs if value)
    return Card(name, entry["label"], entry["note"], given, tuple(_commands(view, name)))


def _app_lines(entry: Mapping[str, Any]) -> str | None:
    lines = entry.get("app_lines")  # not in results of an earlier lab
    return None if lines is None else f"{lines}, without blank ones and comments"


def _commands(view: View, name: str) -> list[str]:
    """Return the words that started it, once for each number of workers."""
    found: dict[int, str] = {}
    for start in view.results.of_kind("start"):
        if start["contestant"] == name:
            found.setdefault(start["workers"], " ".join(start["command"]))
    return list(found.values())


def memory(view: View, name: str) -> str:
    """Return what it weighs idle, and what each further worker adds where that was seen."""
    by_workers: dict[int, list[tuple[float, int]]] = {}
    for start in view.results.of_kind("start"):
        if start["contestant"] == name and start.get("pss_idle_kib"):
            by_workers.setdefault(start["workers"], []).append(
                (start["pss_idle_kib"], start["processes"])
            )
    said: list[str] = []
    middle: dict[int, float] = {}
    for workers, found in sorted(by_workers.items()):
        weight, processes = sorted(found)[len(found) // 2]
        middle[workers] = weight
        noun = "worker" if workers == 1 else "workers"
        said.append(
            f"{words.megabytes(weight)} MB idle with {workers} {noun} "
            f"({processes} {'process' if processes == 1 else 'processes'})"
        )
    if len(middle) > 1 and 1 in middle:
        most = max(middle)
        further = (middle[most] - middle[1]) / (most - 1)
        said.append(f"{words.megabytes(further)} MB for each further worker")
    return "; ".join(said)


def _ready(view: View, name: str) -> str | None:
    ready_s = view.analysis.ready_s.get(name)
    return None if ready_s is None else f"{ready_s * 1e3:.0f} ms"


# --- doubts ---------------------------------------------------------------------------------------


def failed(view: View) -> list[Reason]:
    """Return which contestants failed or were left out, and why."""
    found = [Reason(line) for line in (*_left_out(view), *_conduct(view))]
    return [*found, *_with_verdict(view, FAILED)]


def suspect(view: View) -> list[Reason]:
    """Return every figure that is not to be relied on, and why."""
    return _with_verdict(view, SUSPECT)


def _with_verdict(view: View, word: str) -> list[Reason]:
    return [Reason(kind, tuple(places)) for kind, places in reasons(view, word)]


def reasons(view: View, word: str) -> list[tuple[str, list[str]]]:
    """Return the figures whose rate or cost has a verdict, those with the same reason together."""
    found: dict[str, list[str]] = {}
    for figure in view.analysis.figures.values():
        has_it = word in (figure.verdict.word, figure.cost_verdict.word)
        for reason in figure.reasons if has_it else ():
            detail = f" ({reason.detail})" if reason.detail else ""
            place = f"{figure.section}: {figure.contestant}/{figure.case}{detail}"
            found.setdefault(reason.kind, []).append(place)
    return sorted(found.items())


def _left_out(view: View) -> Iterable[str]:
    for record in view.results.of_kind("left out"):
        yield f"{record['contestant']} was left out: {record['reason']}"


def _conduct(view: View) -> Iterable[str]:
    for name, faults in view.analysis.conduct_faults.items():
        for item, fault in faults.items():
            yield f"{name}, conformance to HTTP/1.1: {item.replace('_', ' ')}: {fault}"


# --- machine --------------------------------------------------------------------------------------


def environment(view: View) -> list[tuple[str, str]]:
    """Return the machine and the versions."""
    run = view.results.run
    values = run["environment"] | {
        "load generator": run["load"],
        "load generator, sha256": run.get("load_sha256", ""),
        "seed": run["plan"]["seed"],
        "schema of the records": run["schema"],
    }
    found = [
        (name.replace("_", " "), words.plain(value))
        for name, value in values.items()
        if value != ""
    ]
    return [*found, *generators.lines(view.results)]


def limits(view: View) -> list[str]:
    """Return what these figures do not show, of this run first."""
    return [*_limits_here(view), *LIMITS]


def _limits_here(view: View) -> Iterable[str]:
    run = view.results.run
    environment = run["environment"]
    if environment.get("hypervisor"):
        yield (
            "This was a virtual machine: neighbours show as steal only if the hypervisor tells, and "
            "hours may differ. Repeat it on another day."
        )
    shared = [workers for workers, place in run["plan"]["placements"].items() if place["is_shared"]]
    if shared:
        yield (
            f"With {', '.join(shared)} workers the load generator took its share of the servers' "
            "CPUs: only the CPU per request stands."
        )
    if not any(section.series["load"]["fraction"] for section in view.analysis.sections):
        yield (
            "Latency is that of closed loops at full load, which understates what visitors see who "
            "come regardless: “citius lab run open” measures that."
        )
    if {int(workers) for workers in run["plan"]["placements"]} <= {1}:
        yield "One worker each: how they scale over cores is not in it (“citius lab run multicore”)."


def conditions(view: View) -> list[tuple[str, Any]]:
    """Return what the head of the page says of the machine."""
    run = view.results.run
    machine = run["environment"]
    kind = ", virtual machine" if machine.get("hypervisor") else ""
    found = [
        ("machine", f"{machine['cpu']}, {machine['cpus_online']} CPUs{kind}"),
        ("kernel", machine["kernel"]),
    ]
    for workers, place in run["plan"]["placements"].items():
        noun = "worker" if workers == "1" else "workers"
        found.append(
            (
                f"{workers} {noun}",
                f"server on CPU {_list(place['server_cpus'])}, load generator on CPU "
                f"{_list(place['load_cpus'])}" + (" (they compete)" if place["is_shared"] else ""),
            )
        )
    return found


def _list(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


RULES = {
    "production": "production: documented settings only",
    "tuned": "tuned: beyond its documented settings",
    "floor": "floor: the physical limit, not a usable server",
}
# So many figures with one reason stand in the list; more are folded.
FEW = 6
LIMITS = (
    "One machine, loopback: no packet loss, no network card, no wire. Ratios carry over better than "
    "rates, and small differences do not carry over.",
    "No database, no uploads, no templates: the work is the articles'. Clear text, except where an "
    "experiment says TLS.",
    "Windows of about a second do not show garbage collection over minutes, memory that grows, or a "
    "JIT that warms up slowly.",
    "Three to eight restarts leave an interval's own width uncertain; of a hundred 95 % intervals "
    "five may be expected to miss.",
    "Citius and the lab have the same authors. Every figure can be drawn again from the raw records.",
)
HOW = (
    "Every answer was parsed and compared with a golden one before and after each measurement, and "
    "its bytes were compared while it ran. Wrong answers, or more than 0.1 % of errors: failed.",
    "The unit of repetition is the restart of a server. ± is half the 95 % interval over "
    "restarts (Student's t on logarithms), as a share. The order is random in every round.",
    "× is the ratio of rates within rounds, with its interval; ≈ marks equals (the interval is within "
    "the margin), ~ what is not decided. CPU ratios are paired by round, too. Ranks are groups: a "
    "contestant that is tied with a group's fastest shares its rank.",
    "CPU per request is the time of the server's whole process tree over exactly the counted "
    "window, divided by the answers in it; what the kernel does in interrupts is not in it. Requests "
    "per core-second are its inverse.",
    "Instructions per request are those of user space, by valgrind's callgrind: counted apart from the "
    "measurement, with one worker and one connection, as many requests in flight on it as in the series, so "
    "that each turn of a server's loop serves fewer requests than under load. What the kernel does is not in "
    "them. Each is the mean of two or more counts; ? marks those that differ by over 2 %, and a dash says "
    "that there is none, for the reason below the table. “citius lab count FOLDER” counts.",
    "Memory is PSS of the process tree: pages that workers share count once.",
    "Percentiles are geometric means of the restarts' own, where a hundred values lie beyond; at a "
    "rate they count from the instant a request was due.",
)
