"""Sentences of the page that follow from figures: conclusions of a table, and the summary of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius_lab.answer.tables import ratio, rows
from citius_lab.definitions.answers import TITLES
from citius_lab.report import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from citius_lab.answer.tables import Kept, Row
    from citius_lab.definitions.experiments import Experiment


def conclusions(experiment: Experiment, found: Sequence[Row]) -> list[str]:
    """Return what an article's table says, as far as its columns were measured."""
    sentences: list[str] = []
    titles = TITLES if experiment.answer is None else TITLES | experiment.answer.titles
    ways: tuple[tuple[str, Callable[[Row], str | None]], ...] = (
        ("With nothing changed but the server", _same),
        ("With handlers written for Citius", lambda row: _cheapest(row, ["native"])),
        ("With the handler compiled", _compiled),
        ("With Citius's own decoder", _own_codec),
    )
    for what, column_of in ways:
        if said := _range(found, column_of, "today"):
            sentences.append(
                f"{what}, a request costs {said} of what it costs in the column “{titles['today']}”."
            )
    for column, language in (("go", titles["go"]), ("rust", titles["rust"])):
        pairs = [
            (row.title, times)
            for row in found
            if (best := _cheapest(row, OWN)) is not None
            and (times := ratio(row.cells, column, best)) is not None
        ]
        if pairs:
            sentences.append(_against(language, pairs))
    return sentences


def _cheapest(row: Row, columns: Iterable[str]) -> str | None:
    """Return which of ``columns`` costs least in a row, ``None`` if it has none of them."""
    found = [name for name in columns if name in row.cells]
    return min(found, key=lambda name: row.cells[name].us, default=None)


def _same(row: Row) -> str | None:
    """Return the column of the same application on Citius."""
    return _cheapest(row, ["same"])


def _compiled(row: Row) -> str | None:
    """Return the column of the cheapest compiled handler; a codec of Citius's own is none."""
    return _cheapest(row, [name for name in COMPILED if not _is_codec(row, name)])


def _own_codec(row: Row) -> str | None:
    """Return the column of a handler with a codec of Citius's own."""
    return _cheapest(row, [name for name in COMPILED if _is_codec(row, name)])


def _is_codec(row: Row, column: str) -> bool:
    cell = row.cells.get(column)
    return cell is not None and cell.contestant.endswith("codec")


def _against(language: str, pairs: Sequence[tuple[str, float]]) -> str:
    """Return how another language compares with the cheapest way on Citius."""
    ahead = [case for case, times in pairs if times < 1 - CLOSE]
    behind = [case for case, times in pairs if times > 1 + CLOSE]
    parts: list[str] = []
    for cases, what in (
        (behind, "costs more than the cheapest way on Citius in"),
        (ahead, "costs less in"),
    ):
        if cases:
            factors = ", ".join(f"{case} (×{words.times(dict(pairs)[case])})" for case in cases)
            parts.append(f"{what} {factors}")
    alike = [case for case, _ in pairs if case not in (*ahead, *behind)]
    if alike:
        parts.append("about the same in " + ", ".join(alike))
    return f"{language} {', and '.join(parts)}."


def _range(found: Sequence[Row], over: Callable[[Row], str | None], under: str) -> str:
    """Return from what share to what share of ``under`` the column that ``over`` chooses costs."""
    shares = [
        share
        for row in found
        if (column := over(row)) is not None
        and (share := ratio(row.cells, column, under)) is not None
    ]
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
    decided = {source for _, (source, _, _) in KINDS}
    tables = [
        (one, rows(one, kept[name]))
        for name, one in experiments.items()
        if one.article is not None or name in decided
    ]
    articles = [(one, found) for one, found in tables if one.article is not None]
    every = [(_name(one, row), row) for one, found in articles for row in found]
    orm = [row for one, found in tables if one.name == "data" for row in found if row.case == "orm"]
    lines = [
        "## In a minute",
        _decisions(tables),
        _stay(articles),
        _compile(every),
        _leave(every, orm),
        SUMMARY_END,
    ]
    return "\n\n".join(line for line in lines if line)


def _decisions(tables: Sequence[tuple[Experiment, Sequence[Row]]]) -> str:
    """Return a table with a line for each kind of work: what Python costs beside Go, and what follows."""
    found = {
        (one.name if one.article is None else one.article.id, row.case, row.label): row
        for one, own in tables
        for row in own
    }
    lines: list[str] = []
    for kind, place in KINDS:
        row = found.get(place)
        if row is None or not {"today", "go"} <= row.cells.keys():
            continue
        go = row.cells["go"].contestant.removeprefix("go-")
        columns = ["today", "same", "native", _cheapest(row, COMPILED)]
        costs = [_times_go(row, column) for column in columns]
        advice = _advice(row) if _cheapest(row, OWN) is not None else ""
        lines.append(f"| {kind} ({place[0]}; {go}) | {' | '.join(costs)} | {advice} |")
    if not lines:
        return ""
    return "\n".join([DECISIONS_HEAD, *lines]) + f"\n\n{DECISIONS_END}"


def _times_go(row: Row, column: str | None) -> str:
    """Return how many times Go's cost a column's is, with a mark where one of the two is doubted."""
    times = None if column is None else ratio(row.cells, column, "go")
    if column is None or times is None:
        return "–"
    return words.times(times) + (DOUBT_MARK if _is_doubtful(row, column, "go") else "")


def _is_doubtful(row: Row, *columns: str) -> bool:
    return any(row.cells[name].is_doubtful for name in columns)


def _advice(row: Row) -> str:
    """Return what a row says to a service whose requests are of its kind."""
    ways = (
        ("same", "stay"),
        ("native", "stay, with handlers for Citius"),
        (_own_codec(row), "stay, with Citius's own codec"),
        (_compiled(row), "compile"),
    )
    for column, advice in ways:
        times = None if column is None else ratio(row.cells, column, "go")
        if column is not None and times is not None and times <= 1 + CLOSE:
            return advice + (" (doubted)" if _is_doubtful(row, column, "go") else "")
    compiled = _compiled(row)
    if compiled is not None and row.cells[compiled].us * DEAR <= row.cells["today"].us:
        return "compile; leave if this is most of the work"
    return "leave if this is most of the work"


def _name(experiment: Experiment, row: Row) -> str:
    """Return a row's name with the number of its article: several have rows of one name."""
    assert experiment.article is not None, "the summary is of the articles"
    return f"{row.title} ({experiment.article.id})"


def _stay(tables: Sequence[tuple[Experiment, Sequence[Row]]]) -> str:
    """Return what changing the server alone does, for handlers that do little and for others."""
    every = [row for _, found in tables for row in found]
    little = _range([row for row in every if row.case in IDLE_CASES], _same, "today")
    much = _range([row for row in every if row.case not in IDLE_CASES], _same, "today")
    if not little:
        return ""
    text = (
        "**Stay, and change the server first.** It takes no line of code. Where the handler does next "
        f"to nothing, an application of the articles costs on Citius {little} of the CPU time that it "
        "costs on its usual server."
    )
    return text + (
        f" Where the handler does the work, changing the server gains less: {much} is left."
        if much
        else ""
    )


def _compile(every: Sequence[tuple[str, Row]]) -> str:
    parts = [
        f"{title}: {_us(row, 'native')} in plain Python, {_us(row, compiled)} compiled"
        + (f", {_us(row, 'go')} in Go" if "go" in row.cells else "")
        for title, row, compiled in _gains(every)
    ]
    if not parts:
        return ""
    return (
        "**Compile the handler that computes.** A loop over bytes or numbers is where plain Python is "
        "dearest, under any server. The same function compiled, in the same service, per request: "
        f"{'; '.join(parts)}."
    )


def _gains(every: Sequence[tuple[str, Row]]) -> list[tuple[str, Row, str]]:
    """Return for each case where compiling gains much the row in which it gains most, with the column."""
    found: dict[str, tuple[float, str, Row, str]] = {}
    for title, row in every:
        column = _compiled(row)
        times = None if column is None else ratio(row.cells, "native", column)
        if column is None or times is None or times < MUCH:
            continue
        if row.case not in found or times > found[row.case][0]:
            found[row.case] = (times, title, row, column)
    return [(title, row, column) for _, title, row, column in found.values()]


def _leave(every: Sequence[tuple[str, Row]], orm: Sequence[Row]) -> str:
    """Return when Python costs a multiple of Go and neither a compiler nor a library takes the work over."""
    loops = [_factor(title, row) for title, row, _ in _gains(every) if "go" in row.cells]
    libraries = [
        _factor(title, row)
        for title, row in every
        if "native" in row.cells
        and _compiled(row) is None
        and (times := ratio(row.cells, "native", "go")) is not None
        and times > DEAR
    ]
    if not loops:
        return ""
    text = (
        "**Leave for what cannot be compiled.** What most of the work costs if it is Python code of its "
        "own, which neither a compiler nor a library in C takes over, the loops of plain Python show: "
        f"{', '.join(loops)} of Go's CPU time."
    )
    if libraries:
        text += f" A library in C that makes Python objects leaves {', '.join(libraries)}."
    for row in orm:
        if "native" in row.cells and ratio(row.cells, "native", "go") is not None:
            text += (
                f" An ORM in Python leaves ×{_times_go(row, 'native')} of what Go's costs "
                f"(`{row.cells['native'].contestant}` beside `{row.cells['go'].contestant}`)."
            )
    return text + (
        " Leave also where many threads have to share one memory, or where memory per process decides."
    )


def _factor(title: str, row: Row) -> str:
    return f"{title} ×{_times_go(row, 'native')}"


def _us(row: Row, column: str) -> str:
    value = row.cells[column].us
    text = f"{value:,.0f}".replace(",", " ") if value >= 100 else f"{value:.3g}"
    return text + (DOUBT_MARK if _is_doubtful(row, column) else "") + " µs"


# What a line of the table is about, and which row of which article or experiment says it.
KINDS = (
    ("a greeting", ("000", "hello", "")),
    ("a greeting, connections kept", ("003", "hello", "connections kept")),
    ("a wait of 2 ms", ("001", "async", "closed loop")),
    ("1000 records as JSON", ("000", "encode-json", "")),
    ("134 kB of data", ("000", "transfer-data", "")),
    ("1000 records of MessagePack", ("000", "parse-msgpack-varied", "texts differ")),
    ("a row of PostgreSQL", ("data", "db-one", "a row")),
    ("20 rows of PostgreSQL as JSON", ("data", "db-rows", "20 rows")),
    ("a record that is cached in Redis", ("data", "redis-get", "a cached record")),
    ("an object of an ORM", ("data", "orm", "SQLAlchemy (Go: GORM, Rust: Diesel)")),
    ("a loop over 101 bytes", ("004", "classify-100", "")),
    ("a loop of a million steps", ("004", "million-loop", "")),
)
DECISIONS_HEAD = (
    "| what a request does (article or experiment; Go's contestant) | usual server "
    "| same application on Citius | handlers for Citius | compiled, or own codec | what follows |\n"
    "| --- | ---: | ---: | ---: | ---: | --- |"
)
DECISIONS_END = (
    "CPU time per request as a multiple of Go's for the same work; the bill for machines follows it. `~`: "
    "the lab's gates doubt one of the two figures. *Stay* stands where Python costs at most 1.15 times what "
    "Go does. In the lines of `data` the usual server runs FastAPI with asyncpg, redis-py or SQLAlchemy."
)
SUMMARY_END = (
    "Each section below has a table of CPU time per request (one has latencies), a table of rates and "
    "memory, and what is to be doubted; [how it was measured](#how-it-was-measured) says when and where."
)
# Ways on Citius that keep Python, and those of them that compile the handler or bring a codec.
OWN = ("same", "native", "compiled", "cython")
COMPILED = ("compiled", "cython")
DOUBT_MARK = "~"
# A cost this close to another is called the same.
CLOSE = 0.15
# Cases in which the handler does next to nothing.
IDLE_CASES = ("hello", "async", "fibonacci", "transfer-data", "classify-0")
# Plain Python beyond so many times Go's cost is a reason to think of leaving.
DEAR = 1.5
# A compiled handler has to save so many times its cost to be named in the summary.
MUCH = 5
