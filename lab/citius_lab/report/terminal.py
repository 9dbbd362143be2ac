"""The figures of a run as tables in the terminal, readable at 100 columns."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from citius_lab.judge.figures import FAILED, SUSPECT
from citius_lab.report import words
from citius_lab.report.sections import about, wires
from citius_lab.report.sections.article import lines as published
from citius_lab.report.sections.open_loop import is_open
from citius_lab.report.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius_lab.judge.figures import Analysis, Figure, Section
    from citius_lab.record import Results

    Cell = Callable[[Figure], Text]


def print_to(console: Console, results: Results, analysis: Analysis) -> None:
    """Print the tables."""
    console.print(terminal(results, analysis))


def terminal(results: Results, analysis: Analysis) -> Group:
    """Return what is printed after a run."""
    view = View(results, analysis)
    parts: list[Any] = []
    # Pipelined ones last: they stand apart.
    for section in sorted(analysis.sections, key=lambda section: section.is_pipelined):
        for names in _chunks(analysis.present(section.id), COLUMNS_MAX):
            parts += _section(view, section, names)
        if section.is_pipelined:
            parts.append(Text(_pipelined_note(analysis, section)))
    parts += [table for one in results.run["experiments"] if (table := _article(view, one))]
    parts += [
        _plain_table(*found)
        for one in results.run["experiments"]
        for found in wires.tables(view, one)
    ]
    parts.append(_memory_table(view))
    lines = [LEGEND, *_verdict_lines(view)]
    lines += [words.noise(one) for one in analysis.noise]
    experiments = dict.fromkeys(section.experiment for section in analysis.sections)
    doubts = [(name, analysis.too_noisy(f"{name}/")) for name in experiments]
    lines += [f"{name}: {why}." for name, why in doubts if why is not None]
    left_out = results.of_kind("left out")
    lines += [f"left out: {record['contestant']}: {record['reason']}" for record in left_out]
    parts.append(Text("\n".join(lines)))
    return Group(*itertools.chain.from_iterable((part, "") for part in parts))


def _section(view: View, section: Section, names: list[str]) -> Iterable[Group]:
    def matrix(title: str, cell: Cell) -> Group:
        return _matrix(view, section, names, title, cell)

    cost = "CPU µs per request, server"
    if is_open(section):
        yield matrix("latency from when it was due, p50 / p99 ms", _latency_cell)
        yield matrix(cost, _cpu_cell)
    elif view.costs_lead(section.id):
        yield matrix(f"{cost}: more of the rates are in doubt", _cpu_cell)
        yield matrix("requests/s", _rate_cell)
    else:
        yield matrix("requests/s", _rate_cell)
        yield matrix(cost, _cpu_cell)
    if not is_open(section):
        yield from _counts(view, section, names)
    figures = [
        view.figure(section.id, case, name)
        for case in view.analysis.cases(section.id)
        for name in names
    ]
    if any(figure is not None and figure.services_cpu_us for figure in figures):
        yield matrix("CPU µs per request, database", _services_cell)
    baseline = view.analysis.baseline_of(section.id)
    if baseline is not None and not section.is_pipelined and not is_open(section):
        yield matrix(f"requests/s, times {baseline}; rank", _ratio_cell)


def _counts(view: View, section: Section, names: list[str]) -> Iterable[Group]:
    cases = view.analysis.cases(section.id)
    figures = (view.figure(section.id, case, name) for case in cases for name in names)
    if any(figure is not None and figure.count is not None for figure in figures):
        title = "instructions per request, server"
        yield _matrix(view, section, names, title, _count_cell)


def _matrix(view: View, section: Section, names: list[str], title: str, cell: Cell) -> Group:
    table = Table(padding=(0, 1, 0, 0), box=None)
    table.add_column("", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for case in view.analysis.cases(section.id):
        figures = [view.figure(section.id, case, name) for name in names]
        table.add_row(case, *(Text("") if figure is None else cell(figure) for figure in figures))
    # Not the table's own title: rich folds that to the width of the table.
    return Group(Text(f"{title} ({section.experiment}: {section.title})", style="italic"), table)


def _rate_cell(figure: Figure) -> Text:
    if not words.is_shown(figure) or figure.rate is None:
        return Text("failed", style="red")
    text = f"{words.brief(figure.rate.value)} {words.spread(figure.rate)}".rstrip()
    if figure.verdict.word == SUSPECT:
        return Text(text + "?", style="yellow")
    return Text(text, style="bold" if figure.leads else "")


def _cpu_cell(figure: Figure) -> Text:
    if not words.is_shown(figure) or figure.cpu_us is None:
        return Text("")
    doubt = words.mark(figure.cost_verdict)
    return Text(words.micros(figure.cpu_us.value) + doubt, style="yellow" if doubt else "")


def _count_cell(figure: Figure) -> Text:
    if not words.is_shown(figure):
        return Text("")
    one = figure.count
    if one is None or one.value is None:
        return Text(words.count(one), style="dim")
    return Text(words.count(one), style="yellow" if one.is_doubtful else "")


def _services_cell(figure: Figure) -> Text:
    if not words.is_shown(figure) or not figure.services_cpu_us:
        return Text("")
    return Text(words.micros(figure.services_cpu_us), style="dim")


def _ratio_cell(figure: Figure) -> Text:
    if not words.is_shown(figure):
        return Text("")
    group = f" #{figure.group}" if figure.group is not None and figure.is_capacity else ""
    if figure.ratio is None:
        return Text("1" + group, style="dim")
    return Text(words.ratio(figure) + group, style="dim" if figure.is_tie else "")


def _latency_cell(figure: Figure) -> Text:
    if not words.is_shown(figure):
        return Text("failed", style="red")
    values = [figure.latency_ms[name] for name in ("p50", "p99") if name in figure.latency_ms]
    text = " / ".join(words.millis(value.value) for value in values) + words.mark(figure.verdict)
    return Text(text, style="yellow" if figure.verdict.word == SUSPECT else "")


def _article(view: View, experiment: dict[str, Any]) -> Group | None:
    """Return an article's figures beside today's, if it published any of what was measured."""
    if experiment["article"] is None:
        return None
    found = [line for line in published(view, experiment) if line.today is not None]
    if not found:
        return None
    table = Table(padding=(0, 1, 0, 0), box=None)
    for column, side in (("", "left"), ("case", "left"), ("then", "right"), ("today", "right")):
        table.add_column(column, justify=side)  # pyright: ignore[reportArgumentType]
    for line in found:
        assert line.today is not None
        then = " · ".join(words.brief(rate) for rate in line.rates)
        table.add_row(line.who, line.case, then, _rate_cell(line.today))
    article = experiment["article"]
    title = (
        f"published by article {article['id']} beside today's, requests/s ({experiment['name']})"
    )
    return Group(
        Text(title, style="italic"), Text(f"then: {article['machine']}", style="dim"), table
    )


def _plain_table(title: str, head: list[str], rows: list[list[str]]) -> Group:
    table = Table(padding=(0, 1, 0, 0), box=None)
    for number, heading in enumerate(head):
        table.add_column(heading, justify="right" if number else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    return Group(Text(title, style="italic"), table)


def _memory_table(view: View) -> Group:
    table = Table(padding=(0, 1, 0, 0), box=None)
    table.add_column("")
    for column in ("PSS idle, MB", "PSS loaded, MB", "accepts after, ms"):
        table.add_column(column, justify="right")
    lines = {name: view.entry(name).get("app_lines") for name in view.analysis.contestants}
    if any(lines.values()):
        table.add_column("lines of code", justify="right")
    for name, n_lines in lines.items():
        table.add_row(
            name, *_memory_words(view.analysis, name), *([str(n_lines)] if n_lines else ())
        )
    return Group(Text("memory and start", style="italic"), table)


def _memory_words(analysis: Analysis, name: str) -> tuple[str, str, str]:
    loaded = [
        figure.pss_kib
        for figure in analysis.figures.values()
        if figure.contestant == name and figure.pss_kib
    ]
    idle = analysis.idle_pss_kib.get(name)
    ready_s = analysis.ready_s.get(name)
    return (
        "" if idle is None else words.megabytes(idle),
        words.megabytes(max(loaded)) if loaded else "",
        "" if ready_s is None else f"{ready_s * 1e3:.0f}",
    )


def _verdict_lines(view: View) -> Iterable[str]:
    """Name the figures that are not valid, those with the same trouble together."""
    for word in (FAILED, SUSPECT):
        for kind, places in about.reasons(view, word):
            n_more = len(places) - len(places[:PLACES_MAX])
            more = f" and {n_more} more" if n_more else ""
            yield f"{word}: {kind}: {', '.join(places[:PLACES_MAX])}{more}"


def _pipelined_note(analysis: Analysis, section: Section) -> str:
    """Say of each contestant what pipelining changed: its rate is no capacity."""
    beside = f"{section.experiment}/{section.series['beside']}"
    said: list[str] = []
    for name in analysis.present(section.id):
        for case in analysis.cases(section.id):
            pair = [analysis.figures.get((one, case, name)) for one in (beside, section.id)]
            rates = [one.rate for one in pair if one is not None and words.is_shown(one)]
            if len(rates) == 2 and rates[0] is not None and rates[1] is not None:
                said.append(f"{name} ×{rates[1].value / rates[0].value:.1f}")
    return "pipelined over the same connections unpipelined: " + ", ".join(said)


def _chunks(names: list[str], size: int) -> list[list[str]]:
    return [names[at : at + size] for at in range(0, len(names), size)]


# Seven columns of "88.2k ±12%?" and the case names fit into 100 characters.
COLUMNS_MAX = 7
# The terminal names so many figures per trouble, the page all of them.
PLACES_MAX = 5
LEGEND = (
    "± half the 95 % interval over restarts · bold: in the fastest group · # rank, shared by ties\n"
    "≈ equal to the baseline · ~ the interval leaves open which is faster · ? suspect, for the reasons below"
)
