"""The named experiments: one file each, ``lab/experiments/NAME.toml``.

A file says which loads and cases are asked of which contestants, how long that may take, and what
the article published whose protocol it is. Adding a file adds an experiment.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from citius_lab import paths
from citius_lab.definitions import reader, wires
from citius_lab.definitions.answers import Answer  # noqa: TC001 (the same)
from citius_lab.definitions.articles import Article  # noqa: TC001 (the reader of definitions evaluates annotations)
from citius_lab.definitions.protocols import Series  # noqa: TC001 (the same)
from citius_lab.definitions.reader import NOT_A_KEY, expect_known
from citius_lab.definitions.workloads import contract
from citius_lab.errors import DefinitionError, LabError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Experiment:
    """One question, asked of several contestants.

    Attributes:
        name: The file's name.
        question: What its tables answer.
        contestants: The contestants that take part where the command line names none.
        series: What is measured, each a table ``[[series]]``.
        budget_s: Seconds it may take by default, builds excluded.
        baseline: What ratios refer to, if it takes part.
        window_s: Seconds a window should have: there are as many rounds as that leaves time for.
        article: The article whose protocol it runs.
        cases_of: Contestants that show only some cases.
        compares_wires: Whether its series differ in what is spoken, so that one contestant's figures in
            all of them are worth a table.
        in_all: Whether it is a part of ``all``.
        answer: How it becomes a part of docs/must-you-leave-python.md.
    """

    name: str = field(metadata=NOT_A_KEY)
    title: str
    question: str
    contestants: tuple[str, ...]
    series: tuple[Series, ...]
    budget_s: float
    baseline: str = "uvicorn"
    window_s: float = 1.5
    article: Article | None = None
    cases_of: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    compares_wires: bool = False
    in_all: bool = True
    answer: Answer | None = None

    def with_workers(self, workers: int) -> Experiment:
        """Return it with so many workers in each series that has one; 0: as many as the machine gives."""
        words = f"{workers} workers" if workers else "as many workers as CPUs"
        series = (
            replace(one, workers=workers, title=f"{one.title}, {words}")
            if one.workers == 1
            else one
            for one in self.series
        )
        return replace(self, series=tuple(series))

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data, the article's figures included."""
        return {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            "baseline": self.baseline,
            "compares_wires": self.compares_wires,
            "series": [series.as_record() for series in self.series],
            "article": None if self.article is None else self.article.as_record(),
        }


def load(folders: Iterable[Path], contestants: Collection[str]) -> dict[str, Experiment]:
    """Read every experiment in ``folders``, in the order of lists; later folders win.

    Args:
        folders: Where the files are.
        contestants: The names of all contestants.

    Raises:
        DefinitionError: A file cannot be read, or names what does not exist.
    """
    found: dict[str, Experiment] = {}
    paths: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.toml")):
            found[path.stem] = read(path, contestants)
            paths[path.stem] = path
    articles = [name for name, one in found.items() if one.article is not None]
    for name, one in found.items():
        if one.answer is not None and one.answer.below:
            expect_known(paths[name], "answer.below", one.answer.below, articles)
    return {one.name: one for one in sorted(found.values(), key=_place)}


def own() -> Path:
    """Return the folder of the lab's own experiments."""
    return paths.folder("experiments")


def _place(one: Experiment) -> tuple[bool, str, str]:
    """The brief look at everything is first, then the articles' experiments."""
    return one.name != "quick", "~" if one.article is None else one.article.id, one.name


def read(path: Path, contestants: Collection[str]) -> Experiment:
    """Read one experiment.

    Raises:
        DefinitionError: It cannot be read, or names what does not exist.
    """
    one = reader.convert(Experiment, reader.read(path), path, name=path.stem)
    for number, name in enumerate(one.contestants):
        expect_known(path, f"contestants[{number}]", name, contestants)
    expect_known(path, "baseline", one.baseline, contestants)
    for name, cases in one.cases_of.items():
        expect_known(path, "cases_of", name, one.contestants)
        for case in cases:
            expect_known(path, f"cases_of.{name}", case, contract().cases)
    ids = [series.id for series in one.series]
    for number, series in enumerate(one.series):
        _check_series(path, f"series[{number}]", series, ids)
    for number, figure in enumerate(() if one.article is None else one.article.published):
        place = f"article.published[{number}]"
        if figure.contestant is not None:
            expect_known(path, f"{place}.contestant", figure.contestant, contestants)
        expect_known(path, f"{place}.case", figure.case, contract().cases)
        expect_known(path, f"{place}.series", figure.series, ids)
    if one.answer is not None:
        one.answer.check(path, contract().cases, ids)
        for name in one.answer.names():
            expect_known(path, "answer", name, one.contestants)
    return one


def _check_series(path: Path, place: str, series: Series, ids: list[str]) -> None:
    for case in (*series.cases, *series.connections):
        expect_known(path, f"{place}.cases", case, contract().cases)
        workload = contract().workloads[contract().case_named(case).workload]
        wire = series.load.wire
        spoken = (
            "websocket"
            if wire == wires.WS
            else "webtransport"
            if wires.is_webtransport(wire)
            else ""
        )
        if workload.messages != spoken:
            kind = f"messages of {workload.messages}" if workload.messages else "requests"
            raise DefinitionError(
                f"{path}: {place}.load: {case!r} is of {kind}, and the wire is {wire}"
            )
    if ids.count(series.id) > 1:
        raise LabError(f"{path}: {place}.id: {series.id!r} is the id of another series, too")
    for key, other in (
        ("beside", series.beside),
        ("only_if_failed", series.only_if_failed),
        ("load.of", series.load.of),
    ):
        if other is not None:
            expect_known(path, f"{place}.{key}", other, ids)


def workers_of(run: Mapping[str, Any], found: Mapping[str, Experiment]) -> int | None:
    """Return what ``--workers`` was in a run: the number of a series that has one worker by itself."""
    for entry in run["experiments"]:
        own = found.get(entry["name"])
        usual = {} if own is None else {series.id: series.workers for series in own.series}
        for series in entry["series"]:
            if usual.get(series["id"]) == 1 and series["workers"] != 1:
                return int(series["workers"])
    return None


def named(name: str, found: Mapping[str, Experiment]) -> list[Experiment]:
    """Return the experiments that a name stands for.

    Raises:
        LabError: It stands for none.
    """
    if name == ALL:
        return [one for one in found.values() if one.in_all]
    if name not in found:
        known = ", ".join([*found, ALL])
        raise LabError(f"no experiment is called {name!r}; there are {known}")
    return [found[name]]


ALL = "all"
