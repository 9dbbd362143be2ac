"""Sentences of the page that follow from figures: conclusions of a table, and the summary of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab import report_words as words
from citius_lab.answer import TITLES, ratio, rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from citius_lab.answer import Cell, Kept, Row
    from citius_lab.experiments import Experiment


def conclusions(experiment: Experiment, found: Sequence[Row]) -> list[str]:
    """Return what an article's table says, as far as its columns were measured."""
    sentences: list[str] = []
    titles = TITLES if experiment.answer is None else TITLES | experiment.answer.titles
    for column, what in (
        ("same", "With nothing changed but the server"),
        ("native", "With handlers written for Citius"),
        ("compiled", "With the handler compiled"),
    ):
        if said := _range(found, column, "today"):
            sentences.append(
                f"{what}, a request costs {said} of what it costs in the column “{titles['today']}”."
            )
    for column, language in (("go", "Go"), ("rust", "Rust")):
        best = {row.title: _best(row) for row in found}
        pairs = [
            (row.title, row.cells[column].us / own.us)
            for row in found
            if column in row.cells and (own := best[row.title]) is not None
        ]
        if pairs:
            sentences.append(_against(language, pairs))
    return sentences


def _best(row: Row) -> Cell | None:
    """Return the cheapest way that keeps Python, of those on Citius."""
    own = [row.cells[name] for name in ("same", "native", "compiled") if name in row.cells]
    return min(own, key=lambda cell: cell.us, default=None)


def _against(language: str, pairs: Sequence[tuple[str, float]]) -> str:
    """Return how another language compares with the cheapest Python on Citius."""
    ahead = [case for case, times in pairs if times < 1 - CLOSE]
    behind = [case for case, times in pairs if times > 1 + CLOSE]
    parts: list[str] = []
    for cases, what in (
        (behind, "costs more than the cheapest of these in"),
        (ahead, "costs less in"),
    ):
        if cases:
            factors = ", ".join(f"{case} (×{words.times(dict(pairs)[case])})" for case in cases)
            parts.append(f"{what} {factors}")
    alike = [case for case, _ in pairs if case not in (*ahead, *behind)]
    if alike:
        parts.append("about the same in " + ", ".join(alike))
    return f"{language} {', and '.join(parts)}."


def _range(found: Sequence[Row], over: str, under: str) -> str:
    shares = [share for row in found if (share := ratio(row.cells, over, under)) is not None]
    if not shares:
        return ""
    low, high = min(shares), max(shares)
    return (
        _share(low)
        if len(shares) == 1 or _share(low) == _share(high)
        else f"{_share(low)} to {_share(high)}"
    )


def _share(value: float) -> str:
    return f"{value:.0%}".replace("%", " %") if value >= 0.01 else f"{value:.1%}".replace("%", " %")


def summary(experiments: Mapping[str, Experiment], kept: Mapping[str, Kept]) -> str:
    """Return the summary at the top: when to stay, what to compile, when to leave."""
    tables = [
        (one, rows(one, kept[name])) for name, one in experiments.items() if one.article is not None
    ]
    every = [(_name(one, row), row) for one, found in tables for row in found]
    lines = [
        "## In a minute",
        _decisions(tables),
        _stay(tables),
        _compile(every),
        _leave(every),
        SUMMARY_END,
    ]
    return "\n\n".join(line for line in lines if line)


def _decisions(tables: Sequence[tuple[Experiment, Sequence[Row]]]) -> str:
    """Return a table with a line for each kind of work: what Python costs beside Go, and what follows."""
    found = {
        (one.article.id, row.case, row.label): row
        for one, own in tables
        if one.article is not None
        for row in own
    }
    lines: list[str] = []
    for kind, place in KINDS:
        row = found.get(place)
        if row is None or not {"today", "go"} <= row.cells.keys():
            continue
        go = row.cells["go"].us
        best = _best(row)
        own = [_times_go(row.cells.get(name), go) for name in ("same", "native", "compiled")]
        advice = _advice(row, go) if best is not None else ""
        cells = [kind, _times_go(row.cells["today"], go), *own, advice]
        lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return ""
    return "\n".join([DECISIONS_HEAD, *lines]) + f"\n\n{DECISIONS_END}"


def _times_go(cell: Cell | None, go: float) -> str:
    return "–" if cell is None else f"{words.times(cell.us / go)}{'~' if cell.is_doubtful else ''}"


def _advice(row: Row, go: float) -> str:
    """Return what a row says to a service whose requests are of its kind."""
    ways = (("same", "stay"), ("native", "stay, with handlers for Citius"), ("compiled", "compile"))
    for column, advice in ways:
        cell = row.cells.get(column)
        if cell is not None and cell.us <= go * (1 + CLOSE):
            return advice
    compiled = row.cells.get("compiled")
    # A codec of Citius's own is no compiler.
    gains = compiled is not None and not compiled.contestant.endswith("codec")
    if compiled is not None and gains and compiled.us * DEAR <= row.cells["today"].us:
        return "compile; leave if this is most of the work"
    return "leave if this is most of the work"


def _name(experiment: Experiment, row: Row) -> str:
    """Return a row's name with the number of its article: several have rows of one name."""
    assert experiment.article is not None, "the summary is of the articles"
    return f"{row.title} ({experiment.article.id})"


def _stay(tables: Sequence[tuple[Experiment, Sequence[Row]]]) -> str:
    """Return what changing the server alone does, for handlers that do little and for others."""
    little: list[str] = []
    much: list[str] = []
    for experiment, found in tables:
        assert experiment.answer is not None, "tables are made of answers"
        name = experiment.answer.columns["today"]
        idle = [row for row in found if row.case in IDLE_CASES]
        busy = [row for row in found if row.case not in IDLE_CASES]
        if said := _range(idle, "same", "today"):
            little.append(f"{said} (`{name}`)")
        if said := _range(busy, "same", "today"):
            much.append(f"{said} (`{name}`)")
    if not little:
        return ""
    text = (
        "**Stay, and change the server first.** It takes no line of code. Where the handler does next "
        "to nothing, the articles' own applications cost on Citius, of the CPU time that they cost on "
        f"their usual servers: {', '.join(little)}."
    )
    if much:
        text += (
            " Where the handler does the work the server is a small part of it, and changing it gains "
            f"less: {', '.join(much)}."
        )
    return text


def _compile(every: Sequence[tuple[str, Row]]) -> str:
    found = [
        (name, row.cells["native"].us, row.cells["compiled"].us, row.cells.get("go"))
        for name, row in every
        if "native" in row.cells
        and "compiled" in row.cells
        and not row.cells["compiled"].contestant.endswith("codec")
    ]
    if not found:
        return ""
    parts = [
        f"{title}: {_us(plain)} in plain Python, {_us(compiled)} compiled"
        + ("" if go is None else f", {_us(go.us)} in Go")
        for title, plain, compiled, go in found
    ]
    return (
        "**Compile the handler that computes.** A loop over bytes or numbers is where plain Python is "
        "dearest, under any server. The same function compiled, in the same service, per request: "
        f"{'; '.join(parts)}."
    )


def _leave(every: Sequence[tuple[str, Row]]) -> str:
    dear = [
        (name, row.cells["native"].us / row.cells["go"].us)
        for name, row in every
        if "native" in row.cells and "go" in row.cells
    ]
    worst = [
        f"{title} ×{words.times(times)}"
        for title, times in sorted(dear, key=lambda one: -one[1])
        if times > DEAR
    ]
    if not worst:
        return ""
    return (
        "**Leave for what cannot be compiled.** Where most of the work is Python code of its own "
        "(objects, dictionaries, an ORM) that neither a library in C nor a compiler takes over, Go "
        f"costs a fraction: plain Python takes {', '.join(worst)} of Go's CPU time here. Leave also "
        "where many threads have to share one memory, or where memory per process decides."
    )


def _us(value: float) -> str:
    return f"{value:,.0f} µs".replace(",", " ") if value >= 100 else f"{value:.3g} µs"


# What a line of the table is about, and which article's row says it.
KINDS = (
    ("a greeting (000)", ("000", "hello", "")),
    ("a greeting, connections kept (003)", ("003", "hello", "connections kept")),
    ("a wait of 2 ms (001)", ("001", "async", "closed loop")),
    ("1000 records as JSON (000)", ("000", "encode-json", "")),
    ("134 kB of data (000)", ("000", "transfer-data", "")),
    ("1000 records of MessagePack (000)", ("000", "parse-msgpack-varied", "texts differ")),
    ("a loop over 101 bytes (004)", ("004", "classify-100", "")),
    ("a loop of a million steps (000)", ("000", "million-loop", "")),
)
DECISIONS_HEAD = (
    "| what a request does | usual server | same application on Citius | handlers for Citius | compiled, "
    "or own codec | what follows |\n| --- | ---: | ---: | ---: | ---: | --- |"
)
DECISIONS_END = (
    "CPU time per request as a multiple of Go's for the same work; the bill for machines follows it. `~`: "
    "the lab's gates doubt the figure. *Stay* stands where Python costs at most 1.15 times what Go does."
)
SUMMARY_END = (
    "Every figure below is CPU time per request on one machine; [how it was measured]"
    "(#how-it-was-measured) says which, and each section says what is to be doubted."
)
# A cost this close to another is called the same.
CLOSE = 0.15
# Cases in which the handler does next to nothing.
IDLE_CASES = ("hello", "async", "fibonacci", "transfer-data", "classify-0")
# Plain Python beyond so many times Go's cost is a reason to think of leaving.
DEAR = 1.5
