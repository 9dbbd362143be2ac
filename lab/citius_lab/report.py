"""The records of a run as a table in the terminal and as one HTML file.

A pure function of the result folder: no clock, no network, no randomness. The HTML names no
address and carries everything it shows.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from citius_lab.figures import FAILED, SUSPECT, VALID, Analysis, Figure, Noise, Section
from citius_lab.plot import COLOURS, Dot, dot_plot
from citius_lab.verdict import error_words
from citius_lab.workloads import CASE_BY_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.record import Results
    from citius_lab.statistics import Interval


# --- terminal -------------------------------------------------------------------------------------


def terminal(results: Results, analysis: Analysis) -> Group:
    """Return what is printed after a run; readable at 100 columns."""
    parts: list[Any] = []
    for section in _ordered(analysis):
        baseline = analysis.baseline_of(section.id)
        for names in _chunks(analysis.present(section.id), COLUMNS_MAX):
            parts.append(_matrix(analysis, section, names, "requests/s", _rate_cell))
            title = "CPU µs per request, server"
            parts.append(_matrix(analysis, section, names, title, _cpu_cell))
            if baseline is not None and not section.is_pipelined:
                title = f"requests/s, times {baseline}"
                parts.append(_matrix(analysis, section, names, title, _ratio_cell))
        if section.is_pipelined:
            parts.append(Text(_pipelined_note(analysis, section)))
    parts.append(_memory_table(analysis))
    lines = [LEGEND, *_verdict_lines(analysis, PLACES_MAX)]
    lines += [noise_text(noise) for noise in analysis.noise]
    lines += [f"left out: {line}" for line in left_out(results)]
    parts.append(Text("\n".join(lines)))
    return Group(*itertools.chain.from_iterable((part, "") for part in parts))


def print_to(console: Console, results: Results, analysis: Analysis) -> None:
    """Print the tables."""
    console.print(terminal(results, analysis))


def _ordered(analysis: Analysis) -> list[Section]:
    """Return the sections, pipelined ones last: they stand apart."""
    return sorted(analysis.sections, key=lambda section: section.is_pipelined)


def _matrix(analysis: Analysis, section: Section, names: list[str], title: str, cell: Any) -> Group:
    table = Table(padding=(0, 1, 0, 0), box=None)
    table.add_column("", no_wrap=True)
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for case in analysis.cases(section.id):
        figures = [analysis.figures.get((section.id, case, name)) for name in names]
        table.add_row(case, *(Text("") if figure is None else cell(figure) for figure in figures))
    # Not the table's own title: rich folds that to the width of the table.
    return Group(Text(f"{title} ({section.experiment}: {section.title})", style="italic"), table)


def _rate_cell(figure: Figure) -> Text:
    if figure.verdict.word == FAILED or figure.rate is None:
        return Text("failed", style="red")
    spread = figure.rate.spread
    text = brief(figure.rate.value) + ("" if spread is None else f" {_spread_text(spread)}")
    if figure.verdict.word == SUSPECT:
        return Text(text + "?", style="yellow")
    return Text(text, style="bold" if figure.leads else "")


def _cpu_cell(figure: Figure) -> Text:
    if figure.verdict.word == FAILED or figure.cpu_us is None:
        return Text("")
    return Text(_micros(figure.cpu_us.value))


def _ratio_cell(figure: Figure) -> Text:
    if figure.verdict.word == FAILED or figure.rate is None:
        return Text("")
    if figure.ratio is None:
        return Text("1", style="dim") if figure.contestant else Text("")
    return Text(_ratio_text(figure), style="dim" if figure.tie else "")


def _memory_table(analysis: Analysis) -> Group:
    table = Table(padding=(0, 1, 0, 0), box=None)
    table.add_column("")
    for column in ("PSS idle, MB", "PSS loaded, MB", "accepts after, ms"):
        table.add_column(column, justify="right")
    for name in analysis.contestants:
        table.add_row(name, *_memory_words(analysis, name))
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
        "" if idle is None else _megabytes(idle),
        _megabytes(max(loaded)) if loaded else "",
        "" if ready_s is None else f"{ready_s * 1e3:.0f}",
    )


def _verdict_lines(analysis: Analysis, places_max: int | None = None) -> Iterable[str]:
    """Name every figure that is not valid, those with the same trouble together."""
    by_kind: dict[tuple[str, str], list[str]] = {}
    for figure in analysis.figures.values():
        for reason in figure.verdict.reasons:
            place = f"{figure.contestant}/{figure.case}"
            place = f"{figure.section}: {place}"
            detail = f" ({reason.detail})" if reason.detail else ""
            by_kind.setdefault((figure.verdict.word, reason.kind), []).append(place + detail)
    for (word, kind), places in sorted(by_kind.items()):
        n_more = len(places) - len(places[:places_max])
        more = f" and {n_more} more" if n_more else ""
        yield f"{word}: {kind}: {', '.join(places[:places_max])}{more}"


def _pipelined_note(analysis: Analysis, section: Section) -> str:
    """Say of each contestant what pipelining changed, so that nobody reads it as capacity."""
    beside = f"{section.experiment}/{section.series['beside']}"
    words: list[str] = []
    for name in analysis.present(section.id):
        for case in analysis.cases(section.id):
            pair = [analysis.figures.get((one, case, name)) for one in (beside, section.id)]
            rates = [figure.rate for figure in pair if figure and figure.verdict.word != FAILED]
            if len(rates) == 2 and rates[0] is not None and rates[1] is not None:
                words.append(f"{name} ×{rates[1].value / rates[0].value:.1f}")
    return "pipelined over the same connections unpipelined: " + ", ".join(words)


def left_out(results: Results) -> list[str]:
    """Return who was left out and why, one line each."""
    return [f"{record['contestant']}: {record['reason']}" for record in results.of_kind("left out")]


# --- HTML -----------------------------------------------------------------------------------------


def html(results: Results, analysis: Analysis) -> str:
    """Return the report as one page that needs nothing else."""
    run = results.run
    sections = [
        _head(results, analysis),
        _overview(analysis),
        *(_section(results, analysis, section) for section in _ordered(analysis)),
        _memory_html(analysis),
        _verdicts_html(results, analysis),
        _contestants_html(results, analysis),
        _environment_html(run),
        METHOD_HTML,
    ]
    style = resources.files("citius_lab").joinpath("report.css").read_text()
    title = f"Citius lab: {run['name']}, {_day(run)}"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def _head(results: Results, analysis: Analysis) -> str:
    run, plan = results.run, results.run["plan"]
    machine = run["environment"]
    counts = Counter(figure.verdict.word for figure in analysis.figures.values())
    verdicts = ", ".join(f"{counts[word]} {word}" for word in (VALID, SUSPECT, FAILED))
    places = plan["placements"].items()
    lines = [
        f"{escape(machine['cpu'])}, {machine['cpus_online']} CPUs"
        f"{', virtual machine' if machine['hypervisor'] else ''}, {escape(machine['kernel'])}",
        *(
            f"{workers} worker(s): server on CPU {_list(place['server_cpus'])}, load generator on "
            f"CPU {_list(place['load_cpus'])}, loopback"
            + (" (they compete)" if place["is_shared"] else "")
            for workers, place in places
        ),
        f"{_rounds_done(results)} rounds; every round restarts every server. "
        f"{len(analysis.figures)} figures: {verdicts}.",
    ]
    end = results.of_kind("end")
    if not end or end[-1]["interrupted"]:
        lines.append("<strong>The run was interrupted;</strong> what was measured is shown.")
    lines += [f"Left out: {escape(line)}." for line in left_out(results)]
    lines += [escape(noise_text(noise)) for noise in analysis.noise]
    body = "".join(f"<p>{line}</p>" for line in lines)
    return f"<header><h1>Who serves how much, {_day(run)}</h1>{body}</header>"


def _overview(analysis: Analysis) -> str:
    parts: list[str] = []
    for section in analysis.sections:
        baseline = analysis.baseline_of(section.id)
        if baseline is None or section.is_pipelined or len(analysis.cases(section.id)) < 2:
            continue
        names = analysis.present(section.id)
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        rows: list[str] = []
        for case in analysis.cases(section.id):
            cells = [analysis.figures.get((section.id, case, name)) for name in names]
            rows.append(f"<tr><th>{case}</th>{''.join(map(_overview_cell, cells))}</tr>")
        parts.append(
            f"<section><h2>{escape(section.experiment)}: times {escape(baseline)}</h2>"
            f"<p>Requests per second as a multiple of {escape(baseline)}'s on the same case. "
            f"≈ marks a tie: the 95&nbsp;% interval of the ratio reaches 1 within "
            f"{analysis.margin(section.id):.0%}. Small: that interval. ? marks a suspect figure.</p>"
            f'<div class="wide"><table class="matrix"><thead><tr><th></th>{head}</tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div></section>"
        )
    return "".join(parts)


def _overview_cell(figure: Figure | None) -> str:
    if figure is None:
        return "<td></td>"
    if figure.verdict.word == FAILED or figure.rate is None:
        return '<td class="failed">failed</td>'
    text = "1" if figure.ratio is None else _ratio_text(figure)
    mark = "?" if figure.verdict.word == SUSPECT else ""
    interval = "" if figure.ratio is None else f"<br><small>{_range_text(figure.ratio)}</small>"
    kind = "tie" if figure.tie else figure.verdict.word
    kind += " leads" if figure.leads else ""
    return f'<td class="{kind}">{text}{mark}{interval}</td>'


def _section(results: Results, analysis: Analysis, section: Section) -> str:
    languages = {entry["name"]: entry for entry in results.run["contestants"]}
    heading = f"<h2>{escape(section.experiment)}: {escape(section.title)}</h2>"
    load = escape(str(section.series["load_text"]))
    shown = [section]
    intro = (
        f"{heading}<p>{load}. Log scales; whiskers are 95&nbsp;% intervals over restarts; "
        "a hollow dot is a suspect figure.</p>"
    )
    if section.is_pipelined:
        shown = [one for one in analysis.sections if one.id == _beside(section)] + shown
        intro = (
            f"{heading}<p>{load}. It shows how much of a small request is system calls; it is "
            "nobody's capacity. Beside it stands the same case on the same connections "
            f"unpipelined.</p><p>{escape(_pipelined_note(analysis, section))}</p>"
        )
    cards = [
        _card(analysis, one, case, languages)
        for one in shown
        for case in analysis.cases(section.id)
        if case in analysis.cases(one.id)
    ]
    return f'<section>{intro}<div class="cards">{"".join(cards)}</div></section>'


def _beside(section: Section) -> str:
    return f"{section.experiment}/{section.series['beside']}"


def _card(analysis: Analysis, section: Section, case: str, entries: dict[str, Any]) -> str:
    figures = [
        figure
        for name in analysis.contestants
        if (figure := analysis.figures.get((section.id, case, name))) is not None
    ]
    figures.sort(key=lambda figure: -(figure.rate.value if figure.rate else 0.0))
    dots = [_dot(figure, entries[figure.contestant]) for figure in figures]
    depth = figures[0].pipeline
    load = f"{figures[0].connections} connections" + (f" × {depth} in flight" if depth > 1 else "")
    heading = f"{case}, {section.title}"
    what = CASE_BY_ID[case].title if case in CASE_BY_ID else case
    return (
        f"<article><h3>{escape(heading)}</h3><p>{escape(what)}; {load}.</p>"
        + dot_plot(f"{heading}: requests per second", dots)
        + _card_table(figures, analysis.baseline_of(section.id))
        + "</article>"
    )


def _dot(figure: Figure, entry: dict[str, Any]) -> Dot:
    colour = COLOURS.get(_family(entry), COLOURS["Python"])
    if figure.verdict.word == FAILED or figure.rate is None:
        return Dot(figure.contestant, colour, "failed")
    rate = figure.rate
    firm = figure.verdict.word == VALID
    text = number(rate.value) + ("" if firm else "?")
    return Dot(figure.contestant, colour, text, rate.value, rate.low, rate.high, firm)


def _family(entry: dict[str, Any]) -> str:
    if entry["name"].startswith("citius"):
        return "Citius"
    return "floor" if entry["rules"] == "floor" else str(entry["language"])


def _card_table(figures: list[Figure], baseline: str | None) -> str:
    times = f"<th>× {escape(baseline)}</th>" if baseline else ""
    rows = "".join(_card_row(figure, baseline) for figure in figures)
    return (
        '<div class="wide"><table><thead><tr><th></th><th>requests/s</th><th>95&nbsp;%</th>'
        f"{times}<th>CPU µs</th><th>p50 ms</th><th>p99 ms</th><th>MB</th><th>errors</th>"
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _card_row(figure: Figure, baseline: str | None) -> str:
    failed = figure.verdict.word == FAILED or figure.rate is None
    spread = None if failed or figure.rate is None else figure.rate.spread
    ratio = ""
    if baseline and not failed:
        ratio = "1" if figure.ratio is None else _ratio_text(figure)
    cells = [
        "" if spread is None else _spread_text(spread),
        *([ratio] if baseline else []),
        "" if failed or figure.cpu_us is None else _micros(figure.cpu_us.value),
        "" if failed or figure.p50_ms is None else f"{figure.p50_ms:.3g}",
        "" if failed or figure.p99_ms is None else f"{figure.p99_ms:.3g}",
        "" if not figure.pss_kib else _megabytes(figure.pss_kib),
        error_words(figure.errors) or "0",
    ]
    values = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr><th>{escape(figure.contestant)}</th>{_rate_html(figure)}{values}</tr>"


def _rate_html(figure: Figure) -> str:
    """Return the cell with the rate, which carries the verdict."""
    word = figure.verdict.word
    reasons = escape("; ".join(map(str, figure.verdict.reasons)))
    text = "failed"
    if word != FAILED and figure.rate is not None:
        text = number(figure.rate.value) + ("?" if word == SUSPECT else "")
    return f'<td class="{word}" title="{reasons}">{text}</td>'


def _memory_html(analysis: Analysis) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th>"
        + "".join(f"<td>{word}</td>" for word in _memory_words(analysis, name))
        + "</tr>"
        for name in analysis.contestants
    )
    return (
        "<section><h2>Memory and start</h2><p>PSS of the process tree (shared pages in proportion): "
        "after the first checks, and the highest seen at the end of a window.</p>"
        '<div class="wide"><table><thead><tr><th></th><th>idle MB</th><th>loaded MB</th>'
        f"<th>accepts after ms</th></tr></thead><tbody>{rows}</tbody></table></div></section>"
    )


def _verdicts_html(results: Results, analysis: Analysis) -> str:
    lines = [escape(line) for line in _verdict_lines(analysis)]
    lines += [
        f"{escape(name)}: {escape(item.replace('_', ' '))}: {escape(fault)}"
        for name, faults in analysis.conduct_faults.items()
        for item, fault in faults.items()
    ]
    items = "".join(f"<li>{line}</li>" for line in lines) or "<li>Every figure is valid.</li>"
    return f"<section><h2>What not to build on</h2><ul>{items}</ul></section>"


def _contestants_html(results: Results, analysis: Analysis) -> str:
    commands = {start["contestant"]: start["command"] for start in results.of_kind("start")}
    items: list[str] = []
    for entry in results.run["contestants"]:
        if entry["name"] not in analysis.contestants:
            continue
        command = " ".join(commands.get(entry["name"], []))
        words = f"JSON: {entry['json']}; records as {entry['records']}; rules: {entry['rules']}"
        if entry["maintainer"] != "lab":
            words += f"; defined by {entry['maintainer']}"
        items.append(
            f"<dt>{escape(entry['name'])}: {escape(entry['label'])}</dt>"
            f"<dd>{escape(entry['note'])} {escape(words)}. {escape(entry['version'])}"
            f"<code>{escape(command)}</code></dd>"
        )
    return f"<section><h2>Contestants</h2><dl>{''.join(items)}</dl></section>"


def _environment_html(run: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(_value_text(value))}</td></tr>"
        for name, value in (run["environment"] | {"load generator": run["load"]}).items()
    )
    return (
        "<section><h2>Environment</h2>"
        f'<div class="wide"><table class="plain"><tbody>{rows}</tbody></table></div></section>'
    )


# --- words ----------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Return a rate in at most four significant digits: 98 720, 413, 16.4."""
    if value >= 1000:
        digits = len(str(int(value))) - 4
        return f"{round(value, -max(digits, 0)):,.0f}".replace(",", " ")
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def brief(value: float) -> str:
    """Return a rate in three digits: 1.32M, 98.7k, 413, 16.4."""
    for factor, unit in ((1e6, "M"), (1e3, "k")):
        if value >= factor * 0.9995:
            scaled = value / factor
            return f"{scaled:.{max(0, 3 - len(str(int(scaled))))}f}{unit}"
    return number(value)


def _spread_text(spread: float) -> str:
    return ">99%" if spread > 0.99 else f"±{_percent(spread)}"


def _ratio_text(figure: Figure) -> str:
    assert figure.ratio is not None
    value = figure.ratio.value
    text = f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
    return ("≈" if figure.tie else "") + text


def _range_text(ratio: Interval) -> str:
    if ratio.low is None or ratio.high is None:
        return "one restart"
    return f"{ratio.low:.3g}–{ratio.high:.3g}"


def _percent(share: float) -> str:
    return f"{share * 100:.0f}%" if share >= 0.0095 else f"{share * 100:.1f}%"


def _micros(value: float) -> str:
    if value >= 1000:
        return number(value)
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _megabytes(kib: float) -> str:
    return f"{kib / 1024 * 1.048576:.1f}"


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return "; ".join(f"{name}: {item}" for name, item in pairs)
    return ", ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)


def _rounds_done(results: Results) -> int:
    return len({record["round"] for record in results.of_kind("measurement")})


def _day(run: dict[str, Any]) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(run["started_at"]))


def noise_text(noise: Noise) -> str:
    """Say what a contestant seems to differ from itself by."""
    return (
        f"Noise floor, {noise.section} {noise.case}: {noise.contestant} against itself "
        f"×{noise.ratio.value:.3f} ({_range_text(noise.ratio)})"
    )


def _list(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


def _chunks(names: list[str], size: int) -> list[list[str]]:
    return [names[at : at + size] for at in range(0, len(names), size)]


# Seven columns of "88.2k ±12%?" and the case names fit into 100 characters.
COLUMNS_MAX = 7
# The terminal names so many figures per trouble, the page all of them.
PLACES_MAX = 5
LEGEND = (
    "± half the 95 % interval over restarts · bold: fastest, or tied with it · ≈ tie · ? suspect"
)
METHOD_HTML = """<section><h2>How to read this</h2>
<ul>
<li>Every answer was parsed and compared with a golden one before and after each measurement, and
its bytes were compared while it ran. A figure with wrong answers, or with more than 0.1&nbsp;% of
errors, is failed.</li>
<li>The unit of repetition is the restart of a server. Intervals are bootstrap intervals over the
restarts' geometric mean, widened for their small number. Order is random in every round.</li>
<li>CPU µs is the CPU time of the server's whole process tree over exactly the counted window,
divided by the requests answered in it. It does not contain what the kernel does in interrupts.</li>
<li>p50 and p99 are those of all rounds' histograms merged, in a closed loop at full load: they say
how evenly a server shares its time, not how it answers an idle day.</li>
<li>This is one machine, loopback, no TLS, no database, one worker, one request at a time per kind.
It does not say how servers scale over cores or behave on a network.</li>
</ul></section>"""
