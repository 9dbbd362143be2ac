"""Puts figures side by side: within one run, and one run against another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius_lab.figures import FAILED, SUSPECT, Analysis, Figure, Key, Reason, Verdict
from citius_lab.statistics import Relation, paired_ratio, relation, unpaired_ratio
from citius_lab.workloads import contract

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.statistics import Interval


def within(analysis: Analysis) -> None:
    """Add ratios, ties, ranks and the doubts that only several figures together raise."""
    alive = [figure for figure in analysis.figures.values() if figure.verdict.word != FAILED]
    for figure in alive:
        name = analysis.baseline_of(figure.section)
        base = analysis.figures.get((figure.section, figure.case, name or ""))
        if base is not None and base is not figure and base.verdict.word != FAILED:
            figure.ratio = paired_ratio(figure.by_round, base.by_round)
            figure.relation = relation(figure.ratio, analysis.margin(figure.section, figure.case))
            figure.cpu_ratio = paired_ratio(figure.cpu_by_round, base.cpu_by_round)
    for section, case in dict.fromkeys((figure.section, figure.case) for figure in alive):
        rivals = [figure for figure in alive if (figure.section, figure.case) == (section, case)]
        if analysis.too_noisy(section, case) is None:
            _rank(rivals, analysis.margin(section, case))
        _doubt_equals(rivals)
    for figure in alive:
        _doubt_unproved(analysis, figure)


def _rank(rivals: list[Figure], margin: float) -> None:
    """Give ranks to groups: who is tied with the fastest of a group belongs to it."""
    left = sorted(rivals, key=lambda figure: -_rate(figure))
    group = 0
    while left:
        group += 1
        best = left[0]
        tied = [
            figure
            for figure in left
            if figure is best
            or relation(paired_ratio(figure.by_round, best.by_round), margin) is not DIFFERENT
        ]
        for figure in tied:
            figure.group, figure.leads = group, group == 1
        left = [figure for figure in left if figure.group is None]


def _doubt_equals(rivals: list[Figure]) -> None:
    """Doubt several contestants at one rate that none of them was the limit of."""
    loose = [figure for figure in rivals if figure.limiter in (None, "generator")]
    for figure in loose:
        peers = [
            other.contestant
            for other in loose
            if other is not figure and abs(_rate(other) / _rate(figure) - 1) <= EQUAL
        ]
        if peers:
            reason = Reason(
                "others have the same rate, and no server was the limit", ", ".join(peers)
            )
            figure.verdict = Verdict(SUSPECT, (*figure.verdict.reasons, reason))


def _doubt_unproved(analysis: Analysis, figure: Figure) -> None:
    """Doubt a figure that costs less than the same work does where it cannot be left out."""
    known = contract().cases.get(figure.case)
    other = known and analysis.figures.get(
        (figure.section, known.proved_by or "", figure.contestant)
    )
    if not other or other.verdict.word == FAILED:
        return
    ratio = paired_ratio(figure.cpu_by_round, other.cpu_by_round)
    if ratio is not None and ratio.high is not None and ratio.high < UNPROVED_MAX:
        detail = f"×{ratio.value:.2f} of {other.case}"
        reason = Reason("costs less than the same work does where its answer proves it", detail)
        figure.verdict = Verdict(SUSPECT, (*figure.verdict.reasons, reason))
        figure.cost_verdict = Verdict(SUSPECT, (*figure.cost_verdict.reasons, reason))


def _rate(figure: Figure) -> float:
    return figure.rate.value if figure.rate is not None else 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure in two runs.

    Attributes:
        ratio: The second run's rate over the first's; ``None`` if one of them has none.
        cpu_ratio: The same of the server's CPU per request.
        verdict: ``same``, ``faster``, ``slower``, ``undecided`` or ``not comparable``.
        why: What keeps it from being comparable.
    """

    key: Key
    verdict: str
    ratio: Interval | None = None
    cpu_ratio: Interval | None = None
    why: str = ""


def runs(first: Analysis, second: Analysis) -> list[Difference]:
    """Compare every figure of two runs, in the order of the first."""
    keys = dict.fromkeys([*first.figures, *second.figures])
    return [_difference(key, first, second) for key in keys]


def _difference(key: Key, first: Analysis, second: Analysis) -> Difference:
    own, other = second.figures.get(key), first.figures.get(key)
    if own is None or other is None:
        return Difference(
            key, NOT_COMPARABLE, why=f"only in the {'first' if own is None else 'second'}"
        )
    failed = [
        f"{place} run: {'; '.join(map(str, figure.verdict.reasons))}"
        for place, figure in (("first", other), ("second", own))
        if figure.verdict.word == FAILED
    ]
    if len(failed) == 2:
        return Difference(key, SAME, why="failed in both")
    if failed:
        return Difference(key, NOT_COMPARABLE, why=failed[0])
    ratio = unpaired_ratio(own.rates, other.rates)
    cpu = unpaired_ratio(list(own.cpu_by_round.values()), list(other.cpu_by_round.values()))
    margin = max(first.margin(*key[:2]), second.margin(*key[:2]))
    return Difference(key, _word(ratio, margin), ratio, cpu)


def _word(ratio: Interval | None, margin: float) -> str:
    found = relation(ratio, margin)
    if ratio is not None and found is DIFFERENT:
        return FASTER if ratio.value > 1 else SLOWER
    # Two runs of a few restarts are seldom within the margin for certain: an interval around 1 that
    # leaves no room for a difference which matters is called the same.
    return SAME if found is Relation.EQUAL or _is_around_one(ratio) else UNDECIDED


def _is_around_one(ratio: Interval | None) -> bool:
    """Tell whether an interval contains 1 and ends before a difference that matters."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low <= 1 <= ratio.high and relation(ratio, SAME_MAX) is Relation.EQUAL


def reproduced(differences: Iterable[Difference]) -> tuple[int, int]:
    """Return how many figures are the same in both runs, and of how many that can be told."""
    decided = [one for one in differences if one.verdict in (SAME, FASTER, SLOWER)]
    return sum(one.verdict == SAME for one in decided), len(decided)


SAME, FASTER, SLOWER = "same", "faster", "slower"
UNDECIDED, NOT_COMPARABLE = "undecided", "not comparable"
# Contestants closer together than this have one rate.
EQUAL = 0.02
# The other one also reads a parameter and writes a number.
UNPROVED_MAX = 0.7
# A difference between two runs that matters, whatever the noise floor is.
SAME_MAX = 0.1
DIFFERENT = Relation.DIFFERENT
