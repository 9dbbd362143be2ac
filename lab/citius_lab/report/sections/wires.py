"""One server, several ways to ask it: what each way changes, a row per contestant, a column per way.

Made of the same figures as the tables of the series; where one is not valid the cell says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from citius_lab.judge.figures import FAILED
from citius_lab.report import words

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius_lab.judge.figures import Figure, Section
    from citius_lab.report.view import View

    Word = Callable[[Figure], str]


Table = tuple[str, list[str], list[list[str]]]


@dataclass(frozen=True, slots=True)
class Wires:
    """The tables: title, headings and rows of each."""

    intro: str
    tables: tuple[Table, ...]

    kind: ClassVar[str] = "wires"


def part(view: View, experiment: dict[str, Any]) -> Wires | None:
    """Return the tables, ``None`` where an experiment does not compare wires."""
    found = tables(view, experiment)
    if not found:
        return None
    intro = "Every row is one server and one application; only what is spoken on the connection differs. "
    if any(series["is_pipelined"] for series in experiment["series"]):
        intro += "Pipelining is shown because it is what multiplexing is compared with: no browser does it. "
    intro += "An empty cell: the server does not speak that. ?: suspect, for the reasons below."
    return Wires(intro, tuple(found))


def tables(view: View, experiment: dict[str, Any]) -> list[Table]:
    """Return title, headings and rows of each table; none where wires are not compared."""
    sections = view.sections(experiment["name"])
    if not experiment.get("compares_wires") or len(sections) < 2:
        return []
    cases = view.analysis.cases(sections[0].id)
    found: list[Table] = []
    for case in cases:
        for title, word in _quantities(view, sections):
            rows = [
                [name, *(_cell(view.figure(one.id, case, name), word) for one in sections)]
                for name in view.analysis.contestants
                if any(view.figure(one.id, case, name) for one in sections)
            ]
            found.append((f"{case}: {title}", ["", *(one.title for one in sections)], rows))
    return found


def _quantities(view: View, sections: list[Section]) -> list[tuple[str, Word]]:
    """Return what there is a table of: instructions where any were counted."""
    found: list[tuple[str, Word]] = [("requests/s", _rate), ("CPU µs per request, server", _cpu)]
    ids = {one.id for one in sections}
    if any(one.count is not None for one in view.analysis.figures.values() if one.section in ids):
        found.append(("instructions per request, server", lambda figure: words.count(figure.count)))
    return found


def _cell(figure: Figure | None, word: Word) -> str:
    if figure is None:
        return ""
    return "failed" if figure.verdict.word == FAILED else word(figure)


def _rate(figure: Figure) -> str:
    return (
        "" if figure.rate is None else words.brief(figure.rate.value) + words.mark(figure.verdict)
    )


def _cpu(figure: Figure) -> str:
    if figure.cpu_us is None:
        return ""
    return words.micros(figure.cpu_us.value) + words.mark(figure.cost_verdict)
