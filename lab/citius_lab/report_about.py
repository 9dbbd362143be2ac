"""What stands behind the figures: contestants, commands, machine, doubts, and what is not shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from citius_lab import report_words as words
from citius_lab.figures import FAILED, SUSPECT
from citius_lab.markup import Markup, el
from citius_lab.report_view import folded, wide

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.report_view import View


# --- contestants ----------------------------------------------------------------------------------


def contestants(view: View) -> Markup:
    """Return every definition: what was run, out of what, and what it weighs."""
    cards = [_contestant(view, name) for name in view.analysis.contestants]
    intro = (
        "Rows of one table differ in more than the language. What differs is part of each "
        "definition: the JSON library, whether records become structs or dicts, what a worker is, "
        "and whose settings these are."
    )
    return el("section", el("h2", "Contestants"), el("p", intro),
              el("div", cards, class_="cards"), id="contestants")  # fmt: skip


def _contestant(view: View, name: str) -> Markup:
    entry = view.entry(name)
    pairs = [
        ("language", entry["language"]),
        ("JSON", entry["json"]),
        ("records as", entry["records"]),
        ("rules", RULES.get(entry["rules"], entry["rules"])),
        ("a worker is", {"processes": "a process", "threads": "a thread"}.get(entry.get("workers", ""))),
        ("does without", ", ".join(entry.get("lacks", ()))),
        ("version", entry["version"]),
        ("memory", memory(view, name)),
        ("accepts after", _ready(view, name)),
        ("defined by", None if entry["maintainer"] == "lab" else entry["maintainer"]),
    ]  # fmt: skip
    items = [(el("dt", key), el("dd", value)) for key, value in pairs if value]
    return el(
        "article",
        el("h3", name, " ", el("small", entry["label"])),
        el("p", entry["note"]),
        el("dl", items, class_="pairs"),
        [el("code", line) for line in _commands(view, name)],
        id=f"contestant-{name}",
    )


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


def doubts(view: View) -> Markup:
    """Return who failed or was left out and why, and every figure not to build on."""
    failed = [el("li", line) for line in (*_left_out(view), *_conduct(view))]
    failed += [_reason(kind, places) for kind, places in reasons(view, FAILED)]
    suspect = [_reason(kind, places) for kind, places in reasons(view, SUSPECT)]
    return el(
        "section",
        el("h2", "What not to build on"),
        el("h3", "Failed, or left out"),
        el("ul", failed, class_="reasons") if failed else el("p", "Nobody."),
        el("h3", "Suspect"),
        el("ul", suspect, class_="reasons") if suspect else el("p", "No figure."),
        id="doubts",
    )


def reasons(view: View, word: str) -> list[tuple[str, list[str]]]:
    """Return the figures that have a verdict, those with the same reason together."""
    found: dict[str, list[str]] = {}
    for figure in view.analysis.figures.values():
        for reason in figure.verdict.reasons if figure.verdict.word == word else ():
            detail = f" ({reason.detail})" if reason.detail else ""
            place = f"{figure.section}: {figure.contestant}/{figure.case}{detail}"
            found.setdefault(reason.kind, []).append(place)
    return sorted(found.items())


def _reason(kind: str, places: list[str]) -> Markup:
    if len(places) <= FEW:
        return el("li", el("b", kind), ": ", ", ".join(places))
    return el("li", folded(f"{kind}: {len(places)} figures", el("p", ", ".join(places))))


def _left_out(view: View) -> Iterable[str]:
    for record in view.results.of_kind("left out"):
        yield f"{record['contestant']} was left out: {record['reason']}"


def _conduct(view: View) -> Iterable[str]:
    for name, faults in view.analysis.conduct_faults.items():
        for item, fault in faults.items():
            yield f"{name}, manners of HTTP/1.1: {item.replace('_', ' ')}: {fault}"


# --- machine --------------------------------------------------------------------------------------


def environment(view: View) -> Markup:
    """Return the machine and the versions, and how to repeat the run."""
    run = view.results.run
    values = run["environment"] | {
        "load generator": run["load"],
        "load generator, sha256": run.get("load_sha256", ""),
        "seed": run["plan"]["seed"],
        "schema of the records": run["schema"],
    }
    rows = [
        el("tr", el("th", name.replace("_", " "), scope="row"), el("td", words.plain(value)))
        for name, value in values.items()
        if value != ""
    ]
    table = el("table", el("tbody", rows), class_="plain")
    again = str(run["environment"].get("lab_command", ""))
    return el(
        "section",
        el("h2", "Environment"),
        el("p", "The run was started by", el("code", again), "and is repeated by",
           el("code", "citius lab rerun FOLDER")) if again else None,
        wide(table),
        id="environment",
    )  # fmt: skip


def limits(view: View) -> Markup:
    """Return what these figures do not show, of this run first."""
    items = [el("li", line) for line in (*_limits_here(view), *LIMITS)]
    how = [el("li", line) for line in HOW]
    return el(
        "section",
        el("h2", "How to read it, and what it does not show"),
        el("h3", "What it does not show"),
        el("ul", items),
        el("h3", "How it was measured"),
        el("ul", how),
        id="limits",
    )


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
    "floor": "floor: the physical limit, no server anybody would use",
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
    "Memory is PSS of the process tree: pages that workers share count once.",
    "Percentiles are geometric means of the restarts' own, where a hundred values lie beyond; at a "
    "rate they count from the instant a request was due.",
)
