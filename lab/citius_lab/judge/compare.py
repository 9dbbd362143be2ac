"""Puts figures side by side: within one run, and one run against another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius_lab.definitions.workloads import contract
from citius_lab.judge.figures import (
    COUNTS_DIFFER_MAX,
    FAILED,
    SUSPECT,
    Analysis,
    Figure,
    Key,
    Reason,
    Verdict,
)
from citius_lab.judge.statistics import Relation, paired_ratio, relation, unpaired_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from citius_lab.judge.statistics import Interval


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
class Change:
    """What became of one quantity.

    Attributes:
        ratio: The second run's over the first's; ``None`` if one of them has none.
        verdict: ``same``, ``undecided``, or in which direction it differs; empty without a ratio.
    """

    ratio: Interval | None = None
    verdict: str = ""


NO_CHANGE = Change()


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure in two runs.

    Attributes:
        rate: Of the second run over that of the first.
        cpu: The same of the server's CPU time per request.
        beside_baseline: The same of that CPU time as a multiple of the baseline's: what may be the same on
            another machine.
        count_ratio: The same of its instructions per request, which have no interval.
        verdict: That of the rate, or ``not comparable``.
        why: What keeps it from being comparable.
    """

    key: Key
    verdict: str
    rate: Change = NO_CHANGE
    cpu: Change = NO_CHANGE
    beside_baseline: Change = NO_CHANGE
    count_ratio: float | None = None
    why: str = ""

    @property
    def has_same_count(self) -> bool:
        """Whether the instructions of both runs differ by less than two counts of one may."""
        return self.count_ratio is not None and abs(self.count_ratio - 1) <= COUNTS_DIFFER_MAX


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
        return Difference(key, NOT_COMPARABLE, why="failed in both")
    if failed:
        return Difference(key, NOT_COMPARABLE, why=failed[0])
    if own.workers != other.workers:
        why = f"{other.workers} workers in the first run, {own.workers} in the second"
        return Difference(key, NOT_COMPARABLE, why=why)
    margin = max(first.margin(*key[:2]), second.margin(*key[:2]))
    rate = _change(own.rates, other.rates, margin, (FASTER, SLOWER))
    costs, costs_before = (list(one.cpu_by_round.values()) for one in (own, other))
    has_one_base = first.baseline_of(key[0]) == second.baseline_of(key[0])
    beside, beside_before = (
        _beside_baseline(key, one) if has_one_base else [] for one in (second, first)
    )
    return Difference(
        key,
        rate.verdict or UNDECIDED,
        rate,
        _change(costs, costs_before, margin, (DEARER, CHEAPER)),
        _change(beside, beside_before, margin, (DEARER, CHEAPER)),
        _count_ratio(own, other),
    )


def _beside_baseline(key: Key, analysis: Analysis) -> list[float]:
    """Return a figure's CPU time over the baseline's in each round; nothing for the baseline itself."""
    section, case, contestant = key
    base = analysis.figures.get((section, case, analysis.baseline_of(section) or ""))
    if base is None or base.contestant == contestant or base.verdict.word == FAILED:
        return []
    own, other = analysis.figures[key].cpu_by_round, base.cpu_by_round
    return [own[number] / other[number] for number in sorted(own.keys() & other.keys())]


def _count_ratio(own: Figure, other: Figure) -> float | None:
    counts = [one.count.value for one in (own, other) if one.count and one.count.value]
    return counts[0] / counts[1] if len(counts) == 2 else None


def _change(
    own: Sequence[float], other: Sequence[float], margin: float, words: tuple[str, str]
) -> Change:
    """Return what became of a quantity; ``words`` say that it is more, and that it is less."""
    ratio = unpaired_ratio(own, other)
    if ratio is None:
        return NO_CHANGE
    found = relation(ratio, margin)
    if found is DIFFERENT:
        return Change(ratio, words[0] if ratio.value > 1 else words[1])
    # Two runs of a few restarts are seldom within the margin for certain: an interval around 1 that
    # leaves no room for a difference which matters is called the same.
    is_same = found is Relation.EQUAL or _is_around_one(ratio)
    return Change(ratio, SAME if is_same else UNDECIDED)


def _is_around_one(ratio: Interval | None) -> bool:
    """Tell whether an interval contains 1 and ends before a difference that matters."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low <= 1 <= ratio.high and relation(ratio, SAME_MAX) is Relation.EQUAL


def is_changed(one: Difference) -> bool:
    """Tell whether a quantity of a figure differs for certain."""
    verdicts = {one.rate.verdict, one.cpu.verdict, one.beside_baseline.verdict}
    has_other_count = one.count_ratio is not None and not one.has_same_count
    return has_other_count or not verdicts <= {"", SAME, UNDECIDED}


def reproduced(differences: Iterable[Difference]) -> tuple[int, int]:
    """Return how many rates are the same in both runs, and of how many that can be told."""
    decided = [one for one in differences if one.verdict in (SAME, FASTER, SLOWER)]
    return sum(one.verdict == SAME for one in decided), len(decided)


def summary(what: str, changes: Sequence[Change]) -> str:
    """Return in a sentence how many of a quantity are the same in both runs."""
    words = [one.verdict for one in changes if one.verdict]
    n_same, undecided = words.count(SAME), words.count(UNDECIDED)
    decided = len(words) - undecided
    if not words:
        return f"{what}: no figure is in both runs"
    note = f"; the intervals of {undecided} are too wide to tell" if undecided else ""
    return f"{what}: {n_same} of {decided} are the same{note}"


def same_counts(differences: Sequence[Difference]) -> tuple[int, int]:
    """Return how many counts of instructions are the same in both runs, and of how many."""
    counted = [one for one in differences if one.count_ratio is not None]
    return sum(one.has_same_count for one in counted), len(counted)


def left_out(found: Sequence[Difference]) -> list[str]:
    """Return what is not comparable, contestants with the same reason together."""
    by_why: dict[str, dict[str, int]] = {}
    for one in found:
        if one.verdict == NOT_COMPARABLE:
            names = by_why.setdefault(one.why, {})
            names[one.key[2]] = names.get(one.key[2], 0) + 1
    return [
        f"not comparable, {why}: {sum(names.values())} figures of {', '.join(names)}"
        for why, names in by_why.items()
    ]


def conclusions(found: Sequence[Difference], *, reproduce: bool = False) -> list[str]:
    """Return how much of each quantity is the same in both runs, in sentences."""
    same, decided = reproduced(found)
    undecided = sum(one.verdict == UNDECIDED for one in found)
    verb = "reproduced" if reproduce else "are the same within their intervals"
    note = f"; the intervals of {undecided} are too wide to tell" if undecided else ""
    lines = [f"{same} of {decided} figures {verb}, by their rates{note}"]
    lines.append(summary("CPU time per request", [one.cpu for one in found]))
    beside = [one.beside_baseline for one in found]
    if any(one.verdict for one in beside):
        said = summary("CPU time per request beside the baseline's", beside)
        lines.append(f"{said} (rates and CPU times are a machine's, this is what carries over)")
    n_same, n_counted = same_counts(found)
    if n_counted:
        lines.append(f"instructions per request: {n_same} of {n_counted} are within 2 %")
    return lines


SAME, FASTER, SLOWER = "same", "faster", "slower"
DEARER, CHEAPER = "more", "less"
UNDECIDED, NOT_COMPARABLE = "undecided", "not comparable"
# Contestants closer together than this have one rate.
EQUAL = 0.02
# The other one also reads a parameter and writes a number.
UNPROVED_MAX = 0.7
# A difference between two runs that matters, whatever the noise floor is.
SAME_MAX = 0.1
DIFFERENT = Relation.DIFFERENT
