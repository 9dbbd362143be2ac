from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from synthetic import SECTION, errors, measurement, results, rounds

from citius_lab.judge import analyse, compare
from citius_lab.judge.statistics import Relation
from citius_lab.report import page as report
from citius_lab.report.sections import comparison

if TYPE_CHECKING:
    from citius_lab.judge.figures import Analysis, Figure


def run(*rates: float, name: str = "a", **changes: Any) -> Analysis:
    records = [measurement(name, i, rate=rate, **changes) for i, rate in enumerate(rates)]
    return analyse.analyse(results(records))


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [
        ((1000.0, 1010.0, 990.0), (1005.0, 995.0, 1000.0), compare.SAME),
        ((1000.0, 1010.0, 990.0), (1505.0, 1495.0, 1500.0), compare.FASTER),
        ((1000.0, 1010.0, 990.0), (805.0, 795.0, 800.0), compare.SLOWER),
        ((500.0, 1000.0, 1900.0), (600.0, 1100.0, 2200.0), compare.UNDECIDED),
        ((1000.0,), (1005.0, 995.0, 1000.0), compare.UNDECIDED),
    ],
)
def test_two_runs(first: tuple[float, ...], second: tuple[float, ...], word: str) -> None:
    (difference,) = compare.runs(run(*first), run(*second))
    assert difference.verdict == word


def test_a_ratio_between_runs_is_the_second_over_the_first() -> None:
    (difference,) = compare.runs(run(1000.0, 1010.0, 990.0), run(2000.0, 2020.0, 1980.0))
    assert difference.rate.ratio is not None
    assert difference.rate.ratio.value == pytest.approx(2.0)


def test_two_runs_are_drawn_with_every_ratio() -> None:
    sides = [
        results([one for name in ("a", "citius") for one in rounds(name, rate=rate)])
        for rate in (1000.0, 2000.0)
    ]
    found = compare.runs(*map(analyse.analyse, sides))
    page = comparison.html(*sides, found, ("first", "second"))
    assert "second over first" in page
    assert page.count("×2.00 faster") >= 2
    assert page.count("CPU time per request, the second over the first") >= 1
    assert "0 of 2 figures are the same within their intervals, by their rates" in page
    only = compare.runs(analyse.analyse(sides[0]), analyse.analyse(results([])))
    said = "not comparable, only in the first: 2 figures of a, citius"
    assert said in comparison.html(*sides, only, ("first", "second"))


def test_on_another_machine_costs_beside_the_baseline_are_what_reproduces() -> None:
    """All rates are twice as high there; one contestant costs more beside the baseline than it did."""

    def machine(factor: float, dear: float) -> Analysis:
        costs = {"a": 1.0, "b": 0.5, "c": 0.25 * dear}
        records = [
            measurement(name, i, rate=factor * 1e4 * (1 + i / 1000), server_cpu_s=factor * cost)
            for name, cost in costs.items()
            for i in range(3)
        ]
        return analyse.analyse(results(records))

    found = compare.runs(machine(1.0, 1.0), machine(2.0, 2.0))
    by_name = {one.key[2]: one for one in found}
    assert {one.verdict for one in found} == {compare.FASTER}
    assert by_name["a"].beside_baseline.ratio is None
    assert by_name["b"].beside_baseline.verdict == compare.SAME
    assert by_name["c"].beside_baseline.verdict == compare.DEARER
    lines = compare.conclusions(found, reproduce=True)
    assert lines[0] == "0 of 3 figures reproduced, by their rates"
    assert lines[2].startswith("CPU time per request beside the baseline's: 1 of 2 are the same (")


def test_runs_with_other_baselines_have_no_costs_beside_one() -> None:
    records = [one for name in "ab" for one in rounds(name)]
    sides = [analyse.analyse(results(records), baseline) for baseline in "ab"]
    assert {one.beside_baseline.verdict for one in compare.runs(*sides)} == {""}


def test_what_failed_or_is_missing_is_not_comparable() -> None:
    good, bad = run(1e3, 1e3, 1e3), run(1e3, 1e3, 1e3, errors=errors(content=1))
    (difference,) = compare.runs(good, bad)
    assert difference.verdict == compare.NOT_COMPARABLE
    assert difference.why.startswith("second run: wrong answers")
    both = compare.runs(good, run(1e3, 1e3, 1e3, name="b"))
    assert [one.why for one in both] == ["only in the first", "only in the second"]
    wrong, crowd = compare.runs(bad, bad), compare.runs(good, run(1e3, 1e3, 1e3, workers=2))
    assert [one.why for one in (*wrong, *crowd)] == [
        "failed in both",
        "1 workers in the first run, 2 in the second",
    ]
    # A failure that is repeated is no figure that is.
    assert compare.reproduced([difference, *both, *wrong, *crowd]) == (0, 0)


def groups(*rows: tuple[str, float]) -> dict[str, Figure]:
    records = [record for name, rate in rows for record in rounds(name, rate=rate)]
    found = analyse.analyse(results(records)).figures
    return {name: found[SECTION, "hello", name] for name, _ in rows}


def test_ranks_are_groups_of_who_is_tied() -> None:
    found = groups(("a", 10_000.0), ("b", 9_900.0), ("c", 5_000.0), ("d", 4_950.0), ("e", 100.0))
    assert {name: figure.group for name, figure in found.items()} == {
        "a": 1,
        "b": 1,
        "c": 2,
        "d": 2,
        "e": 3,
    }
    assert [name for name, figure in found.items() if figure.leads] == ["a", "b"]


def test_the_noise_floor_widens_what_is_a_tie() -> None:
    records = rounds("a") + rounds("b", rate=10_500.0)
    alone = analyse.analyse(results(records))
    assert alone.figures[SECTION, "hello", "b"].relation is Relation.DIFFERENT
    again = rounds("a", rate=10_800.0, again=True)
    noisy = analyse.analyse(results(records + again))
    (noise,) = noisy.noise
    assert noise.ratio.value == pytest.approx(1.08)
    assert noisy.margin(SECTION) == pytest.approx(0.08)
    assert noisy.figures[SECTION, "hello", "b"].relation is Relation.EQUAL
    # A second start of the baseline is no measurement of it.
    assert noisy.figures[SECTION, "hello", "a"].rounds == 3


def test_one_disturbed_restart_does_not_make_everybody_equal() -> None:
    records = rounds("a", 5) + rounds("b", 5, rate=8_000.0)
    again = [
        measurement("a", number, rate=rate, again=True)
        for number, rate in enumerate((10_100.0, 9_900.0, 8_500.0, 10_050.0, 9_950.0))
    ]
    found = analyse.analyse(results(records + again))
    assert found.margin(SECTION) == pytest.approx(0.02)
    assert found.too_noisy(SECTION) is None
    assert [found.figures[SECTION, "hello", name].group for name in "ab"] == [1, 2]


def test_nobody_is_ranked_where_a_server_differs_from_itself() -> None:
    records = rounds("a") + rounds("b", rate=5_000.0)
    again = rounds("a", rate=17_500.0, again=True)
    found = analyse.analyse(results(records + again))
    why = found.too_noisy(SECTION)
    assert why is not None
    assert why.startswith(
        "Too noisy to rank: the same server on hello differs from itself by × 1.75"
    )
    assert [found.figures[SECTION, "hello", name].group for name in "ab"] == [None, None]
    assert "Too noisy to rank" in report.html(results(records + again), found)


def test_nothing_is_ranked_where_the_noise_floor_itself_is_uncertain() -> None:
    records = rounds("a") + rounds("b", rate=5_000.0)
    again = [
        measurement("a", number, rate=rate, again=True)
        for number, rate in enumerate((10_100.0, 9_900.0, 17_000.0))
    ]
    found = analyse.analyse(results(records + again))
    assert found.margin(SECTION) == pytest.approx(0.02)
    assert found.too_noisy(SECTION) is not None
    assert found.figures[SECTION, "hello", "a"].group is None


def test_each_class_of_cases_has_a_noise_floor_of_its_own() -> None:
    cases = ("hello", "fibonacci")
    records = [one for case in cases for one in rounds("a", case=case) + rounds("b", case=case)]
    quiet = rounds("a", again=True, case="hello")
    loud = rounds("a", again=True, case="fibonacci", rate=17_500.0)
    found = analyse.analyse(results(records + quiet + loud))
    assert found.margin(SECTION, "hello") == pytest.approx(0.02)
    assert found.margin(SECTION, "million-loop") == pytest.approx(0.75)
    assert found.too_noisy(SECTION, "hello") is None
    assert found.too_noisy(SECTION, "fibonacci") is not None
    assert found.figures[SECTION, "hello", "a"].group == 1
    assert found.figures[SECTION, "fibonacci", "a"].group is None


def test_undecided_figures_neither_reproduce_nor_fail_to() -> None:
    first, second = run(500.0, 1000.0, 1900.0), run(600.0, 1100.0, 2200.0)
    assert compare.reproduced(compare.runs(first, second)) == (0, 0)


@pytest.mark.parametrize(
    ("second", "word"),
    [
        ((1000.0, 1040.0, 1005.0), compare.SAME),
        ((1090.0, 1150.0, 1075.0), compare.UNDECIDED),  # the interval is narrow and leaves 1 out
        ((1000.0, 1130.0, 940.0), compare.UNDECIDED),  # it contains 1, and a difference of 15 %
    ],
)
def test_the_same_is_an_interval_around_one_without_room_for_a_difference(
    second: tuple[float, ...], word: str
) -> None:
    (found,) = compare.runs(run(1000.0, 1040.0, 1005.0), run(*second))
    assert (found.verdict, compare.reproduced([found])) == (word, (int(word == "same"),) * 2)


def test_several_runs_on_one_process_are_one_value() -> None:
    records = [
        measurement(round_=number, rate=rate, run=run)
        for number in range(3)
        for run, rate in enumerate((5_000.0, 20_000.0))
    ]
    figure = analyse.analyse(results(records)).figures[SECTION, "hello", "a"]
    assert figure.rates == pytest.approx((10_000.0,) * 3)
    assert figure.rounds == 3


def test_a_discarded_run_does_not_count() -> None:
    records = rounds() + rounds(rate=1.0, discarded=True)
    figure = analyse.analyse(results(records)).figures[SECTION, "hello", "a"]
    assert figure.rates == pytest.approx((1e4,) * 3)
