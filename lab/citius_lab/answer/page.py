"""The page ``docs/must-you-leave-python.md``, written from kept results: same results, same bytes."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from citius_lab.answer import picture as answer_picture
from citius_lab.answer import sentences
from citius_lab.answer.picture import Bar
from citius_lab.answer.sentences import DOUBT_MARK
from citius_lab.answer.tables import Kept, Row, ratio, times_of
from citius_lab.answer.tables import rows as rows_of
from citius_lab.definitions.answers import TITLES
from citius_lab.report import words
from citius_lab.report.sections import outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from citius_lab.definitions.answers import Answer
    from citius_lab.definitions.experiments import Experiment


def page(experiments: Mapping[str, Experiment], kept: Mapping[str, Kept]) -> str:
    """Return the page in Markdown.

    Args:
        experiments: All that have a table ``[answer]``, by name, in the order of the page.
        kept: Their kept results by name.
    """
    parts = [
        HEAD,
        sentences.summary(experiments, kept),
        *_articles(experiments, kept),
        *(beyond(one, kept.get(one.name)) for one in experiments.values() if _stands_alone(one)),
        how(kept),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _articles(experiments: Mapping[str, Experiment], kept: Mapping[str, Kept]) -> Iterator[str]:
    """Yield the sections of the articles, each with those that stand below it."""
    for one in experiments.values():
        if one.article is None:
            continue
        yield article(one, kept[one.name])
        for other in experiments.values():
            if other.answer is not None and other.answer.below == one.name:
                yield beyond(replace(other, article=one.article), kept.get(other.name), "###")


def _stands_alone(experiment: Experiment) -> bool:
    answer = experiment.answer
    assert answer is not None, "the page is made of experiments with an answer"
    return experiment.article is None and not answer.below


def pictures(experiments: Mapping[str, Experiment], kept: Mapping[str, Kept]) -> dict[str, str]:
    """Return the pictures of the page by file name."""
    return {
        picture_name(one): picture(one, kept[one.name])
        for one in experiments.values()
        if one.answer is not None and one.answer.picture and one.name in kept
    }


def picture_name(experiment: Experiment) -> str:
    """Return the file name of an experiment's picture."""
    return f"must-you-leave-python-{experiment.name}.svg"


def article(experiment: Experiment, kept: Kept) -> str:
    """Return an article's section: what it said, the table, the conclusion, the picture."""
    answer, source = experiment.answer, experiment.article
    assert answer is not None, "the page is made of experiments with an answer"
    assert source is not None, "this one is an article's"
    found = rows_of(experiment, kept)
    doubts = [*answer.doubts, *measured_doubts(answer, kept, found)]
    return "\n\n".join(
        part
        for part in [
            f"## {answer.heading}",
            f"*{source.title}* ({source.machine}; `{source.tool}`). {answer.said}",
            table(experiment, found),
            counts(experiment, found),
            beside(experiment, found),
            _published_memory(experiment),
            " ".join([*sentences.conclusions(experiment, found), *answer.concludes]),
            "**Doubts.** " + " ".join(doubts),
            _image(experiment, kept),
        ]
        if part
    )


def beyond(experiment: Experiment, kept: Kept | None, level: str = "##") -> str:
    """Return the section of an experiment that no article ran, also where nothing is kept of it."""
    answer = experiment.answer
    assert answer is not None, "the page is made of experiments with an answer"
    if kept is None:
        again = f"Measure it: `citius lab run {experiment.name}`."
        return "\n\n".join(
            [f"{level} {answer.heading}", answer.said, f"{answer.unmeasured} {again}"]
        )
    found = rows_of(experiment, kept)
    parts = [
        f"{level} {answer.heading}",
        answer.said,
        table(experiment, found),
        counts(experiment, found),
        beside(experiment, found),
        " ".join([*compared(answer, found), *answer.concludes]),
        "**Doubts.** " + " ".join([*answer.doubts, *measured_doubts(answer, kept, found)]),
        _image(experiment, kept),
    ]
    return "\n\n".join(filter(None, parts))


def compared(answer: Answer, found: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each row that is compared with another one of its case."""
    titles = TITLES | answer.titles
    for row in found:
        others = [one for one in found if (one.case, one.series) == (row.case, row.over)]
        for other in others:
            factors = {column: times_of(row, other, column) for column in answer.columns}
            said = ", ".join(
                f"{titles[column]} ×{words.times(times)}"
                for column, times in factors.items()
                if times is not None
            )
            if said:
                yield f"{row.title} costs, beside {other.label} of the same server: {said}."


def table(experiment: Experiment, found: Sequence[Row]) -> str:
    """Return the table: CPU time per request by column, latency where that is what is asked."""
    answer = experiment.answer
    assert answer is not None, "the page is made of experiments with an answer"
    columns = _columns(answer, found)
    lines = _lines_of(
        answer,
        found,
        lambda row, column: cell_text(row, column, answer.shows),
        has_published=any(row.published for row in found),
    )
    what = WHAT["ratio" if "today" in columns and answer.shows == "cpu" else answer.shows]
    return "\n".join(lines) + f"\n\n{what} {_who(answer, columns)}"


def counts(experiment: Experiment, found: Sequence[Row]) -> str:
    """Return the table of instructions per request, and why some have none; empty where none was counted."""
    answer = experiment.answer
    assert answer is not None, "the page is made of experiments with an answer"
    cells = [cell for row in found for cell in row.cells.values()]
    if answer.shows != "cpu" or all(cell.figure.count is None for cell in cells):
        return ""
    reasons: dict[str, list[str]] = {}
    for row in found:
        for cell in row.cells.values():
            count = cell.figure.count
            if cell.figure.workers == 1 and (count is None or count.value is None):
                why = count.fault if count else "not counted yet"
                reasons.setdefault(f"`{cell.contestant}` ({why})", []).append(row.title)
    said = "; ".join(f"{what} in {', '.join(titles)}" for what, titles in reasons.items())
    return f"{COUNTS}:\n\n" + "\n".join(
        [
            *_lines_of(answer, found, count_text),
            *(["", f"No instructions of {said}."] if said else []),
        ]
    )


def count_text(row: Row, column: str) -> str:
    """Return what stands in a cell of it."""
    cell = row.cells.get(column)
    if cell is None:
        return "failed" if column in row.failed else "–"
    return words.count(cell.figure.count)


def beside(experiment: Experiment, found: Sequence[Row]) -> str:
    """Return the table beside that of CPU times: rate, memory, and content per second of large responses."""
    answer = experiment.answer
    assert answer is not None, "the page is made of experiments with an answer"
    if answer.shows != "cpu":
        return ""
    lines = _lines_of(answer, found, beside_text)
    return f"{BESIDE}:\n\n" + "\n".join(lines)


def beside_text(row: Row, column: str) -> str:
    """Return what stands in a cell of it."""
    cell = row.cells.get(column)
    if cell is None or cell.figure.rate is None:
        return "failed" if column in row.failed else "–"
    figure, rate = cell.figure, cell.figure.rate.value
    parts = [f"{words.brief(rate)}/s{words.mark(figure.verdict)}"]
    if figure.pss_kib:
        parts.append(f"{words.megabytes(figure.pss_kib)} MB")
    if (figure.body_bytes or 0) >= LARGE:
        parts.append(f"{words.number(rate * (figure.body_bytes or 0) / MIB)} MiB/s")
    return ", ".join(parts)


def _columns(answer: Answer, found: Sequence[Row]) -> list[str]:
    return [column for column in answer.columns if any(column in row.cells for row in found)]


def _lines_of(
    answer: Answer,
    found: Sequence[Row],
    cell: Callable[[Row, str], str],
    *,
    has_published: bool = False,
) -> list[str]:
    """Return a table's lines: a row for each of ``found``, a column for each that was measured.

    Where an article published figures the table begins with them.
    """
    titles, columns = TITLES | answer.titles, _columns(answer, found)
    head = ["", *([PUBLISHED] if has_published else []), *(titles[column] for column in columns)]
    rows = (
        [
            row.title,
            *([row.published.replace("; ", "<br>") or "–"] if has_published else []),
            *(cell(row, column) for column in columns),
        ]
        for row in found
    )
    marks = ["---"] * (2 if has_published else 1) + ["---:"] * len(columns)
    return [_line(head), _line(marks), *map(_line, rows)]


def _who(answer: Answer, columns: Sequence[str]) -> str:
    """Return which contestants stand in the columns, where rows do not differ in it."""
    titles = TITLES | answer.titles
    by_column = {
        column: dict.fromkeys(row.columns.get(column, answer.columns[column]) for row in answer.row)
        for column in columns
    }
    names = (
        f"{titles[column]}: " + ", ".join(f"`{name}`" for name in found if name)
        for column, found in by_column.items()
    )
    return f"Contestants: {'; '.join(names)}."


def cell_text(row: Row, column: str, shows: str) -> str:
    """Return what stands in a cell."""
    cell = row.cells.get(column)
    if cell is None:
        return "failed" if column in row.failed else "–"
    if shows == "latency":
        found = [cell.figure.latency_ms.get(name) for name in ("p50", "p90", "p99")]
        return " / ".join("–" if one is None else words.millis(one.value) for one in found)
    text = micros(cell.us) + (DOUBT_MARK if cell.is_doubtful else "")
    times = ratio(row.cells, column, "today")
    return text if times is None or column == "today" else f"{text} (×{words.times(times)})"


def micros(us: float) -> str:
    """Return a span in µs, at most three digits of it."""
    return f"{us:,.0f}".replace(",", " ") if us >= 100 else f"{us:.3g}"


def measured_doubts(answer: Answer, kept: Kept, rows: Sequence[Row]) -> list[str]:
    """Return what this very run leaves to be doubted."""
    valid, suspect, failed = kept.counts(of_cost=answer.shows == "cpu")
    what = "CPU times" if answer.shows == "cpu" else "latencies"
    found = [
        f"Of the run's {valid + suspect + failed} {what} {valid} are valid, {suspect} suspect and {failed} "
        "failed by the lab's gates."
    ]
    found += [f"Failed: {row.title}, {why}." for row in rows for why in row.failed.values()]
    if kept.foreign > BUSY:
        found.append(
            f"Other programs kept {kept.foreign:.1f} CPUs of the machine busy while it was measured: "
            "rates are those of a busy machine, CPU time per request is less disturbed."
        )
    return found


def picture(experiment: Experiment, kept: Kept) -> str:
    """Return the picture of a section."""
    answer = experiment.answer
    assert answer is not None, "the page is made of experiments with an answer"
    row = next(row for row in answer.row if row.case == answer.picture)
    names: dict[str, str] = {}
    for column, usual in answer.columns.items():
        names.setdefault(row.columns.get(column, usual), _kind(column, usual))
    for name in answer.also:
        names.setdefault(name, "citius" if name.startswith("citius") else "other")
    bars: list[Bar] = []
    for name, kind in names.items():
        figure = kept.figure(row.series, row.case, name)
        if figure is not None and figure.cpu_us is not None:
            cost = figure.cpu_us
            bars.append(Bar(kept.label(name), cost.value, cost.low, cost.high, kind))
    what = ", ".join(filter(None, (row.case, row.label)))
    return answer_picture.svg(f"{what}: CPU time of the server per request", bars)


def how(kept: Mapping[str, Kept]) -> str:
    """Return how the page came about: machines, commits, commands."""
    is_counted = any(one.counted_at for one in kept.values())
    head = ["experiment", "measured", "commit", "command", "restarts"]
    head += ["instructions counted at"] if is_counted else []
    lines = [_line(head), _line(["---"] * len(head))]
    for name, one in kept.items():
        day = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(one.run["started_at"]))
        command = one.run["environment"].get("lab_command", "")
        restarts = max((figure.rounds for figure in one.analysis.figures.values()), default=0)
        commit = one.run["environment"].get("commit", "unknown")
        cells = [f"[{name}](../{one.folder})", day, f"`{commit}`", f"`{command}`", str(restarts)]
        cells += [", ".join(f"`{at}`" for at in one.counted_at) or "–"] if is_counted else []
        lines.append(_line(cells))
    agreement = [
        f"- {name}: {said}"
        for name, one in kept.items()
        for said in outside.findings(one.analysis.outside)
    ]
    machines = dict.fromkeys(_machine(one) for one in kept.values())
    return "\n\n".join(
        [
            "## How it was measured",
            HOW.strip(),
            *([COUNTED.strip()] if is_counted else []),
            "\n".join(lines),
            *([OUTSIDE + "\n\n" + "\n".join(agreement)] if agreement else []),
            f"Machine{'s' if len(machines) > 1 else ''}: " + "; ".join(machines) + ".",
        ]
    )


def _machine(kept: Kept) -> str:
    machine = kept.run["environment"]
    kind = "a virtual machine with " if machine.get("hypervisor") else ""
    return (
        f"{kind}{machine['cpus_online']} CPUs ({machine['cpu']}), {machine['kernel']}, "
        f"{machine.get('contestants_python', machine['python'])}, {machine['go']}, {machine['rustc']}"
    )


def _published_memory(experiment: Experiment) -> str:
    assert experiment.article is not None, "these are an article's rows"
    memory = [
        f"{one.who} {_times(one.processes)}{one.memory_mb:g} MB"
        for one in experiment.article.published
        if one.memory_mb is not None
    ]
    return f"Memory by the article: {'; '.join(memory)}." if memory else ""


def _times(processes: int) -> str:
    return f"{processes} × " if processes > 1 else ""


def _image(experiment: Experiment, kept: Kept) -> str:
    answer = experiment.answer
    assert answer is not None, "the page is made of experiments with an answer"
    name = picture_name(experiment)
    drawn = f"![{experiment.title}: CPU time per request](pictures/{name})\n\n"
    return (drawn if answer.picture else "") + (
        f"Records: [{kept.folder}](../{kept.folder}). Again: `citius lab run {experiment.name}`."
    )


def _kind(column: str, name: str) -> str:
    if column in ("compiled", "cython"):
        return "compiled"
    if name.startswith("citius"):
        return "citius"
    return "usual" if column == "today" else "other"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


HEAD = """
<!-- Written by `citius lab answer` from lab/published; `make answer` measures anew first. -->

# Must you leave Python?

Five articles between 2015 and 2023 asked whether a service has to leave Python for Go or Rust. Here
their protocols are run again: with their applications on the server that was usual for them, with
nothing changed but the server, with handlers written for Citius, with compiled handlers, and with the
articles' Go and Rust.
"""
HOW = """
One worker on one CPU, or as many as CPUs where a row says so, and the load generator on another CPU.
Responses are checked before, during and after a measurement, large ones by sample during it. A figure is
the geometric mean over restarts; `~` behind a CPU time and `?` behind a rate say that the lab's gates
doubt it, most often for fewer than three restarts, less than a second counted, or a 95 % interval wider
than ±25 %. Ratios are paired by restart. [The method](../lab/METHOD.md) lists the gates, and says what
such figures do not show: no network but loopback, no disk. Each section is of one machine.
"""
COUNTED = """
Instructions are counted by valgrind's callgrind, apart from the measurement: of user space alone, with one
worker, over one connection with as many requests in flight as in the measurement. Each is the mean of two
or more counts; `?` marks those that differ by more than 2 %. What the kernel does, most of a large response,
is not in them.
"""
OUTSIDE = "Other load generators, asked beside the lab's own:"
PUBLISHED = "published, requests/s of its machine"
COUNTS = "Instructions per request, in user space"
BESIDE = "Requests per second, memory while it served, and content per second of large responses"
# Responses with this much content are shown in MiB/s, too.
LARGE = 100_000
MIB = 1 << 20
# CPUs that others used, beyond which the page says so.
BUSY = 0.1
WHAT = {
    "cpu": "CPU time of the server per request in µs.",
    "ratio": (
        "CPU time of the server per request in µs, and in brackets how many times that of the first "
        "of these columns it is."
    ),
    "latency": (
        "Latency of the other requests in ms: median / 90th / 99th percentile; one that fewer than a "
        "hundred values lie beyond is not shown."
    ),
}
