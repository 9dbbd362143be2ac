"""One case of one section: its plots side by side, its table, and what the gates saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import contract
from citius_lab.judge.figures import FAILED, SUSPECT, VALID
from citius_lab.judge.statistics import Interval
from citius_lab.judge.verdict import error_words
from citius_lab.report import words
from citius_lab.report.plots.rows import Row, row_plot
from citius_lab.report.view import Cell, Column, Notes, badge, figures_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius_lab.judge.figures import Figure, Section
    from citius_lab.report.plots.rows import RowPlot
    from citius_lab.report.view import FiguresTable, Note, View

    Value = Callable[[Figure], "Interval | None"]


@dataclass(frozen=True, slots=True)
class Case:
    """What ``templates/case.html`` shows of one case.

    Attributes:
        id: The place that links lead to; empty for none.
        gates: What the gates saw, folded below its title.
        uncounted: Contestants without a count of instructions, each with the reason.
    """

    id: str
    name: str
    about: str
    plots: tuple[RowPlot, ...]
    table: FiguresTable
    notes: tuple[Note, ...]
    gates_title: str
    gates: FiguresTable
    uncounted: tuple[str, ...] = ()


def closed(view: View, section: Section, case: str) -> Case:
    """Return a case whose rate is what is asked for."""
    figures = view.ranked(section.id, case)
    notes = Notes()
    columns = [
        Column("rank", lambda figure: rank(figure, figures), lambda figure: figure.group),
        Column("requests/s", rate, rate_key),
        Column("95 % interval", _rate_span, rate_key),
        *_ratio_columns(view, section),
        Column("CPU µs/request", lambda figure: _shown(figure, cpu(figure)), cpu_key),
        *count_columns(figures),
        *_services_columns(figures),
        Column("req per core-s", lambda figure: _shown(figure, per_core(figure)), per_core_key),
        percentile_column("p50"),
        percentile_column("p99"),
        Column("MB loaded", lambda figure: words.megabytes(figure.pss_kib) if figure.pss_kib else "",
               lambda figure: figure.pss_kib),
        *_handshake_columns(section),
        *_size_columns(case, figures),
        Column("limited by", lambda figure: _shown(figure, figure.limiter or "not found")),
        Column("of CPU time", lambda figure: badge(figure.cost_verdict)),
        Column("verdict", lambda figure: badge(figure.verdict, notes.letters(figure))),
    ]  # fmt: skip
    id = f"{section.id}/{case}".replace("/", "-")
    return _case(view, section, figures, case, closed_plots(view, figures), columns, notes, id)


def count_columns(figures: list[Figure]) -> list[Column]:
    """Return the column of instructions per request, if any of the figures was counted."""
    if all(figure.count is None for figure in figures):
        return []
    return [Column("instructions/request", count, _count_key)]


def count(figure: Figure) -> Cell | str:
    """Return the instructions per request, with how much the counts differ where that matters."""
    if not words.is_shown(figure):
        return ""
    one = figure.count
    small = ""
    if one is not None and one.is_doubtful:
        small = f"counts differ by {words.percent(one.differ)}"
    return Cell(words.count(one), small)


def _count_key(figure: Figure) -> float | None:
    return None if figure.count is None else figure.count.value


def uncounted(figures: list[Figure]) -> tuple[str, ...]:
    """Return the contestants whose instructions are not counted, with reasons; empty if none was counted."""
    if all(figure.count is None for figure in figures):
        return ()
    return tuple(
        f"{figure.contestant} ({figure.count.fault if figure.count else 'not counted yet'})"
        for figure in figures
        if words.is_shown(figure) and (figure.count is None or figure.count.value is None)
    )


def _services_columns(figures: list[Figure]) -> list[Column]:
    if not any(figure.services_cpu_us for figure in figures):
        return []
    return [
        Column(
            "database's CPU µs",
            lambda figure: words.micros(figure.services_cpu_us or 0.0),
            lambda figure: figure.services_cpu_us,
        )
    ]


def _size_columns(case: str, figures: list[Figure]) -> list[Column]:
    """Return the size of responses, and rates weighed by it, where a case is scored by both.

    HttpArena's formula: requests per second times the square of (smallest response / own response).
    """
    known = contract().cases.get(case)
    sizes = [
        one.bytes_per_response for one in figures if words.is_shown(one) and one.bytes_per_response
    ]
    if known is None or not known.is_scored_by_size or not sizes:
        return []

    def score(figure: Figure) -> float | None:
        if figure.rate is None or not figure.bytes_per_response:
            return None
        return figure.rate.value * (min(sizes) / figure.bytes_per_response) ** 2

    def text(value: float | None) -> str:
        return "" if value is None else words.number(value)

    return [
        Column(
            "bytes a response",
            lambda one: text(one.bytes_per_response),
            lambda one: one.bytes_per_response,
        ),
        Column("requests/s, by size", lambda one: text(score(one)), score),
    ]


def _handshake_columns(section: Section) -> list[Column]:
    """Return how often a request began with a handshake, where connections are replaced over TLS."""
    load = section.series["load"]
    if not load.get("requests_per_connection") or not load["tls"]:
        return []
    return [Column("handshakes that resumed", _handshakes)]


def _handshakes(figure: Figure) -> Cell | str:
    if not figure.handshakes:
        return ""
    share = f"1 request in {figure.completed / figure.handshakes:.0f}"
    return Cell(f"{figure.handshakes_resumed} of {figure.handshakes}", share, below=True)


def paced(view: View, section: Section, case: str) -> Case:
    """Return a case at a rate that was asked for: what matters is the wait."""
    figures = view.ranked(section.id, case)
    notes = Notes()
    columns = [
        Column("answered/s", rate, rate_key),
        Column("of what was due", _achieved, lambda figure: figure.achieved),
        *map(percentile_column, ("p50", "p90", "p99", "p99.9")),
        Column("p99 from the send", _service_p99),
        Column("CPU µs/request", lambda figure: _shown(figure, cpu(figure)), cpu_key),
        Column("of CPU time", lambda figure: badge(figure.cost_verdict)),
        Column("verdict", lambda figure: badge(figure.verdict, notes.letters(figure))),
    ]
    drawn = [
        row_plot("Latency, ms; band: p50 to p99", latency_rows(view, figures)),
        row_plot("Server CPU per request, µs", rows(view, figures, cpu_of, words.micros)),
    ]
    return _case(view, section, figures, case, drawn, columns, notes)


def _case(
    view: View,
    section: Section,
    figures: list[Figure],
    case: str,
    plots: Iterable[RowPlot],
    columns: list[Column],
    notes: Notes,
    id: str = "",
) -> Case:
    table = figures_table(figures, columns)
    doubts = sum(figure.verdict.word == SUSPECT for figure in figures)
    costs = sum(figure.cost_verdict.word == SUSPECT for figure in figures)
    many = f"{doubts} of {len(figures)} suspect, of their CPU times {costs or 'none'}"
    said = f", {many}" if doubts or costs else ""
    return Case(
        id,
        case,
        _about(section, figures, case),
        tuple(plots),
        table,
        tuple(notes.found()),
        f"What the gates saw{said}",
        _gates(view, figures),
        uncounted(figures),
    )


def _about(section: Section, figures: list[Figure], case: str) -> str:
    first = figures[0]
    depth = f" × {first.pipeline} in flight" if first.pipeline > 1 else ""
    workers = "1 worker" if first.workers == 1 else f"{first.workers} workers"
    # Users open what they need; the heading of the series says how many come.
    has_number = first.connections and section.series["load"]["pace"] != "users"
    load = f"{first.connections} connections{depth}, " if has_number else ""
    known = contract().cases
    what = known[case].title if case in known else case
    return f"{what}; {load}{workers}"


# --- plots ----------------------------------------------------------------------------------------


def closed_plots(view: View, figures: list[Figure]) -> list[RowPlot]:
    """Return throughput, cost, latency and memory, rows in one order."""
    return [
        row_plot("Requests per second", rows(view, figures, rate_of, words.brief)),
        row_plot("Server CPU per request, µs", rows(view, figures, cpu_of, words.micros)),
        row_plot("Latency, ms; band: p50 to p99", latency_rows(view, figures)),
        row_plot("Memory, MB; band: idle to peak", memory_rows(view, figures)),
    ]


def rows(
    view: View, figures: list[Figure], value: Value, write: Callable[[float], str]
) -> list[Row]:
    """Return a plot's rows for one value of each figure."""
    return [
        _row(view, figure, value(figure), write, is_cost=value in (cpu_of, per_core_of))
        for figure in figures
    ]


def _row(
    view: View,
    figure: Figure,
    value: Interval | None,
    write: Callable[[float], str],
    *,
    is_cost: bool = False,
) -> Row:
    name, family = figure.contestant, view.family(figure.contestant)
    group = figure.group if figure.is_capacity else 0
    if not words.is_shown(figure):
        return Row(name, family, "failed", group=group)
    if value is None:
        return Row(name, family, "", group=group)
    verdict = figure.cost_verdict if is_cost else figure.verdict
    text = write(value.value) + words.mark(verdict)
    return Row(name, family, text, value, verdict.word == VALID, group=group)


def latency_rows(view: View, figures: list[Figure]) -> list[Row]:
    """Return rows from p50 to p99."""
    found: list[Row] = []
    for figure in figures:
        half, tail = figure.latency_ms.get("p50"), figure.latency_ms.get("p99")
        row = _row(view, figure, half, words.millis)
        if row.value is not None and half is not None and tail is not None:
            text = f"{words.millis(half.value)} – {words.millis(tail.value)}{words.mark(figure.verdict)}"
            row = Row(row.label, row.family, text, half, row.firm,
                      (half.value, tail.value), tail, group=row.group)  # fmt: skip
        found.append(row)
    return found


def memory_rows(view: View, figures: list[Figure]) -> list[Row]:
    """Return rows from idle over loaded to peak."""
    found: list[Row] = []
    for figure in figures:
        loaded = Interval(figure.pss_kib * MB, None, None) if figure.pss_kib else None
        row = _row(view, figure, loaded, lambda value: words.megabytes(value / MB))
        if row.value is not None and figure.pss_kib:
            idle = view.analysis.idle_pss_kib.get(figure.contestant) or figure.pss_kib
            low = min(idle, figure.pss_kib) if figure.workers == 1 else figure.pss_kib
            peak = max(figure.pss_peak_kib or 0, figure.pss_kib)
            row = Row(row.label, row.family, row.text.rstrip("?"), row.value, True,
                      (low * MB, peak * MB), group=row.group)  # fmt: skip
        found.append(row)
    return found


def rate_of(figure: Figure) -> Interval | None:
    """Return the rate."""
    return figure.rate


def cpu_of(figure: Figure) -> Interval | None:
    """Return the server's CPU time per request, µs."""
    return figure.cpu_us


def per_core_of(figure: Figure) -> Interval | None:
    """Return the requests per core-second."""
    return figure.per_core_s


# --- cells ----------------------------------------------------------------------------------------


def rank(figure: Figure, figures: list[Figure]) -> str:
    """Return the group: ``1``, or ``1=`` for several who are tied."""
    if not words.is_shown(figure) or figure.group is None or not figure.is_capacity:
        return "–"
    tied = sum(other.group == figure.group for other in figures)
    return f"{figure.group}=" if tied > 1 else str(figure.group)


def rate(figure: Figure) -> Cell | str:
    """Return the rate with half its interval's width."""
    if figure.verdict.word == FAILED or figure.rate is None:
        return "–"
    text = words.number(figure.rate.value) + words.mark(figure.verdict)
    return Cell(text, words.spread(figure.rate))


def _rate_span(figure: Figure) -> Cell | str:
    return _shown(figure, words.span(figure.rate, words.brief))


def cpu(figure: Figure) -> Cell | str:
    """Return the CPU time per request with half its interval's width."""
    if figure.cpu_us is None:
        return ""
    text = words.micros(figure.cpu_us.value) + words.mark(figure.cost_verdict)
    return Cell(text, words.spread(figure.cpu_us))


def per_core(figure: Figure) -> str:
    """Return the requests per core-second."""
    return "" if figure.per_core_s is None else words.brief(figure.per_core_s.value)


def percentile(figure: Figure, name: str) -> Cell | str:
    """Return a percentile with half its interval's width."""
    value = figure.latency_ms.get(name)
    if value is None or not words.is_shown(figure):
        return ""
    return Cell(words.millis(value.value), words.spread(value))


def percentile_column(name: str) -> Column:
    """Return the column of a percentile."""

    def key(figure: Figure) -> float | None:
        return _number(figure.latency_ms.get(name))

    return Column(f"{name} ms", lambda figure: percentile(figure, name), key)


def rate_key(figure: Figure) -> float | None:
    """Return what rows are sorted by in the column of the rate."""
    return _number(figure.rate)


def cpu_key(figure: Figure) -> float | None:
    """Return what rows are sorted by in the column of the CPU time."""
    return _number(figure.cpu_us)


def per_core_key(figure: Figure) -> float | None:
    """Return what rows are sorted by in the column of requests per core-second."""
    return _number(figure.per_core_s)


def _number(value: Interval | None) -> float | None:
    return None if value is None else value.value


def _shown(figure: Figure, cell: Cell | str) -> Cell | str:
    return cell if words.is_shown(figure) else ""


def _ratio_columns(view: View, section: Section) -> Iterable[Column]:
    baseline = view.analysis.baseline_of(section.id)
    if baseline is not None:
        yield Column(
            f"× {baseline}",
            lambda figure: _ratio(figure, baseline),
            lambda figure: _number(figure.ratio) or 1.0,
        )


def _ratio(figure: Figure, baseline: str) -> Cell | str:
    if not words.is_shown(figure):
        return ""
    if figure.ratio is None:
        return "1" if figure.contestant == baseline else "–"
    return Cell(words.ratio(figure), words.span(figure.ratio))


def _achieved(figure: Figure) -> str:
    if figure.achieved is None or not words.is_shown(figure):
        return ""
    return f"{figure.achieved:.1%}"


def _service_p99(figure: Figure) -> str:
    value = figure.service_ms.get("p99")
    return "" if value is None or not words.is_shown(figure) else words.millis(value.value)


def _gates(view: View, figures: list[Figure]) -> FiguresTable:
    """Return what the gates looked at: shares, ceiling, warm-up, size."""
    columns = [
        Column(
            "server CPU",
            lambda figure: _share(figure.server_share),
            lambda figure: figure.server_share,
        ),
        Column(
            "generator CPU",
            lambda figure: _share(figure.generator_share),
            lambda figure: figure.generator_share,
        ),
        Column("generator µs/request", _generator_us, lambda figure: figure.generator_cpu_us),
        Column("generator's ceiling/s", _ceiling, lambda figure: figure.ceiling),
        Column("warm-up", lambda figure: words.warm_up(figure.warm_up)),
        Column("restarts", lambda figure: str(figure.rounds), lambda figure: figure.rounds),
        Column(
            "answers counted",
            lambda figure: words.number(figure.completed),
            lambda figure: figure.completed,
        ),
        percentile_column("p90"),
        percentile_column("p99.9"),
        Column("MB peak", lambda figure: _peak(figure), lambda figure: figure.pss_peak_kib),
        Column("errors", lambda figure: error_words(figure.errors) or "0"),
        Column("records", view.raw),
    ]
    return figures_table(figures, columns)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _generator_us(figure: Figure) -> str:
    return "" if figure.generator_cpu_us is None else words.micros(figure.generator_cpu_us)


def _ceiling(figure: Figure) -> str:
    return "" if figure.ceiling is None else words.brief(figure.ceiling)


def _peak(figure: Figure) -> str:
    return words.megabytes(figure.pss_peak_kib) if figure.pss_peak_kib else ""


# KiB in MB.
MB = 1024 / 1e6
