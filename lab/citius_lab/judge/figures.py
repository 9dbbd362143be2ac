"""What an analysis consists of: figures, sections, the noise floor. Plain data, no rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from citius_lab.definitions.workloads import contract
from citius_lab.judge.statistics import Relation, typical_deviation

if TYPE_CHECKING:
    from citius_lab.judge.statistics import Interval

Key = tuple[str, str, str]  # section, case, contestant


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a figure is not valid.

    Attributes:
        kind: What figures with the same trouble have in common.
        detail: What is particular to this one.
    """

    kind: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether to believe a figure, and why not: ``valid``, ``suspect`` or ``failed``."""

    word: str
    reasons: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """The instructions of a request, in user space, counted at least twice.

    Attributes:
        value: The mean of the counts; ``None`` where there is no count.
        differ: How much more the largest one is than the smallest.
        fault: Why there is no count.
    """

    value: float | None = None
    differ: float = 0.0
    fault: str = ""

    @property
    def is_doubtful(self) -> bool:
        """Whether they differ by more than a change that matters."""
        return self.differ > COUNTS_DIFFER_MAX


@dataclass(frozen=True, slots=True)
class Section:
    """One table: a series of an experiment.

    Attributes:
        id: ``experiment/series``.
        series: The series' record, with ``load_text``, ``is_pipelined``, ``beside``, ``is_article``.
    """

    id: str
    experiment: str
    series: dict[str, Any]

    @property
    def title(self) -> str:
        """The heading."""
        return str(self.series["title"])

    @property
    def is_pipelined(self) -> bool:
        """Whether it belongs into the section kept apart."""
        return bool(self.series["is_pipelined"])


@dataclass(slots=True)
class Figure:
    """What one contestant did on one case of one section.

    Attributes:
        verdict: Whether to believe its rate and its latencies.
        cost_verdict: Whether to believe its CPU time per request.
        shares_cpus: Whether server and generator competed for CPUs.
        is_capacity: Whether the rate is what the server can do; at an offered rate it is not.
        limiter: What kept the rate from being higher, in words; ``None`` if nothing was found.
        rate: Valid answers per second.
        by_round: The rate of every round.
        cpu_by_round: The server's CPU per request of every round, in µs; empty where one used none.
        per_core_s: Requests that one second of server CPU bought.
        ceiling: What the generator could drive at the cost per request it had here.
        latency_ms: Percentiles: geometric mean and interval of the rounds' own.
        service_ms: The same from the actual send, where requests had a due time.
        bytes_per_response: What came over the wire for each valid answer, heads included.
        handshakes: TLS handshakes within the windows, and those of them that resumed a session.
        error_share: Of everything that was asked.
        ratio: Its rate over the baseline's; ``None`` for the baseline itself or without one.
        cpu_ratio: Its CPU per request over the baseline's, paired by round.
        relation: What the ratio says of the two; different where there is no ratio.
        group: Rank of the group it shares with those it is tied with; 1 is fastest.
        leads: Whether it is in the fastest group.
        count: Instructions per request; ``None`` where nothing tried to count them.
        warm_up: What the search for the steady state said, ``None`` where there was none.
    """

    section: str
    case: str
    contestant: str
    verdict: Verdict
    cost_verdict: Verdict
    shares_cpus: bool = False
    workers: int = 1
    connections: int = 0
    pipeline: int = 1
    rounds: int = 0
    completed: int = 0
    counted_s: float = 0.0
    is_capacity: bool = True
    limiter: str | None = None
    offered_per_s: float | None = None
    achieved: float | None = None
    rate: Interval | None = None
    rates: tuple[float, ...] = ()
    by_round: dict[int, float] = field(default_factory=dict[int, float])
    cpu_by_round: dict[int, float] = field(default_factory=dict[int, float])
    cpu_us: Interval | None = None
    per_core_s: Interval | None = None
    generator_cpu_us: float | None = None
    services_cpu_us: float | None = None
    server_share: float | None = None
    generator_share: float | None = None
    ceiling: float | None = None
    latency_ms: dict[str, Interval] = field(default_factory=dict[str, "Interval"])
    service_ms: dict[str, Interval] = field(default_factory=dict[str, "Interval"])
    lag_p99_ms: float | None = None
    pss_kib: int | None = None
    pss_peak_kib: int | None = None
    body_bytes: int | None = None
    bytes_per_response: float | None = None
    handshakes: int = 0
    handshakes_resumed: int = 0
    errors: dict[str, int] = field(default_factory=dict[str, int])
    error_share: float = 0.0
    ratio: Interval | None = None
    cpu_ratio: Interval | None = None
    relation: Relation = Relation.DIFFERENT
    group: int | None = None
    leads: bool = False
    warm_up: dict[str, Any] | None = None
    count: Count | None = None

    @property
    def key(self) -> Key:
        """What tells it from the others of a run."""
        return self.section, self.case, self.contestant

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """The reasons against its rate, then those against its CPU time alone."""
        own = self.verdict.reasons
        return own + tuple(one for one in self.cost_verdict.reasons if one not in own)

    @property
    def is_tie(self) -> bool:
        """Whether the ratio does not tell which of the two is faster."""
        return self.relation is not Relation.DIFFERENT

    @property
    def p50_ms(self) -> float | None:
        """The median latency."""
        return self.latency_ms["p50"].value if "p50" in self.latency_ms else None

    @property
    def p99_ms(self) -> float | None:
        """The 99th percentile, where there are values enough for it."""
        return self.latency_ms["p99"].value if "p99" in self.latency_ms else None


@dataclass(frozen=True, slots=True)
class Noise:
    """What one contestant seems to differ from itself by, measured like two contestants.

    Attributes:
        by_round: The ratio of every round.
    """

    section: str
    case: str
    contestant: str
    ratio: Interval
    by_round: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """What another load generator says of the same process, beside the lab's own.

    Attributes:
        rate: Its requests per second over the lab's, paired by round; ``None`` without both.
        cpu: The same of the server's CPU time per request.
        share: What it used of a CPU itself.
        server_share: What the server used of each of its workers' CPUs meanwhile.
        errors: Requests that it counted as failed, in all rounds.
        faults: Why it gave no figure.
    """

    section: str
    case: str
    contestant: str
    tool: str
    rate: Interval | None = None
    cpu: Interval | None = None
    share: float = 0.0
    server_share: float = 0.0
    errors: int = 0
    faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Analysis:
    """Everything a report shows that is not in the records as it stands."""

    baselines: dict[str, str | None]
    contestants: list[str]
    sections: list[Section]
    figures: dict[Key, Figure]
    noise: list[Noise]
    idle_pss_kib: dict[str, int]
    ready_s: dict[str, float]
    conduct_faults: dict[str, dict[str, str]]
    outside: list[Outside] = field(default_factory=list[Outside])

    def cases(self, section: str) -> list[str]:
        """Return the cases of a section, in the order of its series."""
        present = {case for name, case, _ in self.figures if name == section}
        order = [case for one in self.sections if one.id == section for case in one.series["cases"]]
        return [case for case in order if case in present]

    def present(self, section: str) -> list[str]:
        """Return who has a figure in a section."""
        names = {key[2] for key in self.figures if key[0] == section}
        return [name for name in self.contestants if name in names]

    def baseline_of(self, section: str) -> str | None:
        """Return what the ratios of a section refer to."""
        return self.baselines.get(section.partition("/")[0])

    def noise_of(self, section: str, case: str | None = None) -> list[Noise]:
        """Return the noise floors of a section's experiment: of the case's class, else all of them."""
        experiment = section.partition("/")[0]
        found = [one for one in self.noise if one.section.startswith(f"{experiment}/")]
        same = [one for one in found if case is not None and _class(one.case) == _class(case)]
        return same or found

    def margin(self, section: str, case: str | None = None) -> float:
        """Return the difference that is a tie: 2 %, or the noise floor of the case's class beyond it.

        The floor is what a baseline's restart typically differs by: its median over the rounds, which
        one disturbed round does not move.
        """
        ratios = [ratio for one in self.noise_of(section, case) for ratio in one.by_round]
        return max(PRACTICAL, typical_deviation(ratios)) if ratios else PRACTICAL

    def too_noisy(self, section: str, case: str | None = None) -> str | None:
        """Return why nothing is ranked, in words; ``None`` if contestants can be."""
        for one in self.noise_of(section, case):
            low, high = one.ratio.low, one.ratio.high
            deviates = self.margin(section, case) > RANKED_NOISE_MAX
            is_wide = (one.ratio.spread or 0.0) > RANKED_NOISE_MAX
            if deviates or is_wide:
                span = "" if low is None or high is None else f" ({low:.2f} to {high:.2f})"
                return (
                    f"Too noisy to rank: the same server on {one.case} differs from itself by "
                    f"× {one.ratio.value:.2f}{span}, and beyond ±{RANKED_NOISE_MAX:.0%} a rank means "
                    "nothing. Measure again on a quieter machine"
                )
        return None


def _class(case: str) -> str:
    """Return the class of a case; one that is not of the contract is a class of its own."""
    cases = contract().cases
    return cases[case].noise_class if case in cases else case


VALID, SUSPECT, FAILED = "valid", "suspect", "failed"
# The margin of the gate on instructions.
COUNTS_DIFFER_MAX = 0.02
# Differences below this share do not matter to users, however narrow the interval is.
PRACTICAL = 0.02
# Where the same server differs from itself by more, ranks are withheld: contestants that differ by
# a quarter are what most tables are about.
RANKED_NOISE_MAX = 0.25
