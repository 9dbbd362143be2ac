"""The table ``[answer]`` of an experiment: how its results become a part of the answer's page.

It says which contestant stands in which column of its article's table: the article's own application on its
usual server, the same on Citius, the same handlers written for Citius, compiled handlers, and the article's
other languages. ``citius_lab.answer`` writes the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from citius_lab.definitions.reader import expect_known

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One row of an article's table.

    Attributes:
        columns: Contestants that stand in other columns in this row than in the rest of the table; an empty
            name leaves the cell empty.
        label: What stands behind the case's name.
        published: What the article says of it in words, where it has no figure.
        over: The series of another row of the case, whose costs a sentence compares with these.
    """

    case: str
    series: str
    label: str = ""
    columns: dict[str, str] = field(default_factory=dict[str, str])
    published: str = ""
    over: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """How an article's experiment becomes a part of the page.

    Attributes:
        heading: Of the article's section.
        said: What the article concludes, in a sentence.
        columns: Contestants by column: ``today``, ``same``, ``native``, ``compiled``, ``go``, ``rust``,
            or others that ``titles`` names.
        titles: Headings of columns that are not the usual ones.
        below: The article's experiment in whose section it stands, beside what that article published.
        picture: The case that is drawn, in the first row that has it; none without one.
        also: Contestants that the picture shows beside the columns.
        shows: CPU time per request, or latency.
        concludes: Sentences behind the measured ones.
        doubts: What speaks against the conclusion, a sentence each.
        unmeasured: What stands in place of the table while no result is kept; without it one has to be.
    """

    heading: str
    said: str
    row: tuple[AnswerRow, ...]
    columns: dict[str, str]
    below: str = ""
    picture: str = ""
    titles: dict[str, str] = field(default_factory=dict[str, str])
    also: tuple[str, ...] = ()
    shows: Literal["cpu", "latency"] = "cpu"
    concludes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    unmeasured: str = ""

    def check(self, path: Path, cases: Collection[str], ids: Collection[str]) -> None:
        """Check the names in it, as far as the experiment knows them.

        Raises:
            DefinitionError: A name does not exist.
        """
        for number, row in enumerate(self.row):
            expect_known(path, f"answer.row[{number}].case", row.case, cases)
            expect_known(path, f"answer.row[{number}].series", row.series, ids)
            if row.over:
                others = [other.series for other in self.row if other.case == row.case]
                expect_known(path, f"answer.row[{number}].over", row.over, others)
            for column in row.columns:
                expect_known(path, f"answer.row[{number}].columns", column, self.columns)
        if self.picture:
            expect_known(path, "answer.picture", self.picture, [row.case for row in self.row])
        for column in self.columns:
            expect_known(path, "answer.columns", column, [*TITLES, *self.titles])

    def names(self) -> list[str]:
        """Return every contestant that it names."""
        rows = (name for row in self.row for name in row.columns.values())
        found = dict.fromkeys([*self.columns.values(), *rows, *self.also])
        return [name for name in found if name]


# The usual columns of an article's table, in their order.
TITLES = {
    "today": "the same today",
    "same": "same application on Citius",
    "native": "native handlers",
    "compiled": "compiled",
    "go": "Go",
    "rust": "Rust",
}
