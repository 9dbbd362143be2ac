"""The table of the README between its two marks, written from kept results.

It has a few cases of ``quick`` and one column for each server. ``answer_page`` writes the tables of
docs/must-you-leave-python.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.answer.page import micros
from citius_lab.errors import LabError
from citius_lab.judge.figures import VALID
from citius_lab.judge.statistics import paired_ratio
from citius_lab.report import words

if TYPE_CHECKING:
    from citius_lab.answer.tables import Kept

# The experiments of the table and of the sentence on compiled handlers below it.
TABLE, COMPILED = "quick", "work-in-handler"


def with_table(readme: str, table: Kept, compiled: Kept) -> str:
    """Return the README with what stands between the marks written anew.

    Args:
        readme: Its text.
        table: The kept result of ``quick``.
        compiled: The kept result of ``work-in-handler``.

    Raises:
        LabError: A mark is missing, or a result lacks what the table shows of Citius.
    """
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise LabError(f"README.md: the marks {BEGIN!r} and {END!r} were expected")
    parts = [_said(table), _table(table), _compiled(table, compiled)]
    return f"{before}{BEGIN}\n" + "\n\n".join(parts) + f"\n{END}{after}"


def _said(kept: Kept) -> str:
    """Return what was measured, and how many figures are to be believed."""
    machine = kept.run["environment"]
    figures = kept.analysis.figures.values()
    valid = sum(one.cost_verdict.word == VALID for one in figures)
    restarts = max(one.rounds for one in figures)
    python, cpus, cpu = (machine[key] for key in ("contestants_python", "cpus_online", "cpu"))
    return (
        f"CPU time of the server per request in µs ({python}, {cpus} CPUs of a machine with {cpu}, "
        f"up to {restarts} restarts of each\ncontestant). Of the run's {len(figures)} CPU times {valid} "
        "are valid by the lab's gates; the others are marked ?. In brackets: requests per\nsecond as a "
        "multiple of those of Citius. The handlers are `def` functions in plain Python; the floor is an "
        "epoll loop that parses nothing."
    )


def _table(kept: Kept) -> str:
    lines = [["", *COLUMNS.values()], ["---"] * (1 + len(COLUMNS))]
    for case, title, others in ROWS:
        own, *rest = (others.get(column, column) for column in COLUMNS)
        if kept.figure("closed", case, own) is None:
            raise LabError(f"{kept.folder}: a figure of {case} by {own} was expected")
        lines.append([title, *(_cell(kept, case, name, own) for name in (own, *rest))])
    return "\n".join(
        f"|{'|'.join(f' {one} ' if one else ' ' for one in cells)}|" for cells in lines
    )


def _cell(kept: Kept, case: str, name: str, own_name: str) -> str:
    """Return CPU time and relative rate, each with its doubt; in bold those of Citius."""
    figure, own = kept.figure("closed", case, name), kept.figure("closed", case, own_name)
    if figure is None or figure.cpu_us is None:
        return ""
    cost = micros(figure.cpu_us.value) + words.mark(figure.cost_verdict)
    if name == own_name:
        return f"**{cost}**"
    ratio = None if own is None else paired_ratio(figure.by_round, own.by_round)
    if own is None or ratio is None:
        return cost
    doubt = words.mark(figure.verdict) or words.mark(own.verdict)
    return f"{cost} ({words.times(ratio.value)}{doubt})"


def _compiled(table: Kept, kept: Kept) -> str:
    """Return the sentence about compiled handlers, beside the other languages in the same run."""
    costs = [
        _cost(kept, name) for name in ("citius-numba", "citius-cython", "rust-axum", "go-net-http")
    ]
    numba, cython, axum, go = costs
    machines = {one.run["environment"]["cpu"] for one in (table, kept)}
    where = " on another machine" if len(machines) > 1 else ""
    return (
        "In the last row the handler does the work. A handler in plain Python takes this time under every "
        "server. Compiled by numba or by Cython the\n"
        f"same handler takes {numba} and {cython} µs, where axum takes {axum} and net/http {go} "
        f"(`make lab RUN={COMPILED}`, another run{where})."
    )


def _cost(kept: Kept, name: str) -> str:
    figure = kept.figure("path-length", "classify-100", name)
    if figure is None or figure.cpu_us is None:
        raise LabError(f"{kept.folder}: a figure of classify-100 by {name} was expected")
    return micros(figure.cpu_us.value) + words.mark(figure.cost_verdict)


BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
COLUMNS = {
    "citius": "Citius",
    "uvicorn": "uvicorn",
    "granian-rsgi": "granian RSGI",
    "go-net-http": "Go net/http",
    "rust-axum": "Rust axum",
    "rust-floor": "floor",
}
# Whose handlers are no `async def`.
NO_PYTHON = dict.fromkeys(("go-net-http", "rust-axum", "rust-floor"), "")
# The case, what stands before the row, and columns in which another contestant stands, or none.
ROWS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("hello", "`hello`", {}),
    (
        "hello",
        "`hello`, `async def`",
        {"citius": "citius-async", "go-net-http": "", "rust-axum": "", "rust-floor": ""},
    ),
    ("async", "`async`: sleep 2 ms", {}),
    ("encode-json", "`encode-json`: 1000 records", {}),
    ("transfer-data", "`transfer-data`: 134 kB", {}),
    ("classify-100", "`classify-100`: work in the handler", {}),
)
