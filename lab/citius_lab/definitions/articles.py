"""What a source article published: the table ``[article]`` of the experiment that runs its protocol.

Published figures stand beside today's and are never an expectation of this machine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of an article.

    Attributes:
        who: The contestant in the article's words.
        contestant: The closest contestant here; ``None`` if there is none.
        case: The case it belongs to here.
        series: The series of the experiment it belongs to.
        error_share: Of all requests; ``None`` where the article does not tell.
        memory_mb: Of each process while it served, in MB; ``None`` where the article does not tell.
        processes: How many processes served.
    """

    who: str
    case: str
    series: str
    requests_per_s: float
    contestant: str | None = None
    error_share: float | None = None
    memory_mb: float | None = None
    processes: int = 1
    note: str = ""


@dataclass(frozen=True, slots=True)
class Article:
    """One source article.

    Attributes:
        tool: The article's own command.
        hides: What a reader of its table does not learn, one sentence each.
        other: Published figures that are no rates, in words.
    """

    id: str
    title: str
    machine: str
    tool: str
    hides: tuple[str, ...]
    published: tuple[Published, ...] = ()
    other: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)
