from __future__ import annotations

from typing import Any

import pytest
from synthetic import SECTION, errors, measurement, results, rounds

from citius_lab.judge import analyse
from citius_lab.judge.figures import FAILED, SUSPECT, VALID, Figure
from citius_lab.judge.statistics import Relation


def only_figure(records: list[dict[str, Any]]) -> Figure:
    (figure,) = analyse.analyse(results(records)).figures.values()
    return figure


# --- figures ---


def test_cpu_per_request_is_corrected_for_late_snapshots() -> None:
    figure = only_figure(
        rounds(elapsed_s=1.0, server_cpu_s=1.2)
        and [
            {**record, "usage": {**record["usage"], "elapsed_s": 1.25, "server_cpu_s": 1.25}}
            for record in rounds()
        ]
    )
    assert figure.cpu_us is not None
    assert figure.cpu_us.value == pytest.approx(100.0)


def test_percentiles_are_the_means_of_the_rounds() -> None:
    figure = only_figure(rounds())
    assert figure.p50_ms == pytest.approx(1.0, rel=0.002)
    assert figure.p99_ms == pytest.approx(20.0, rel=0.002)


def test_memory_is_the_highest_seen() -> None:
    records = rounds()
    records[1]["memory"] = {"pss_kib": 4096, "processes": 2}
    assert only_figure(records).pss_kib == 4096


def compare(own: list[float], base: list[float]) -> Figure:
    records = [measurement("fast", number, rate=rate) for number, rate in enumerate(own)]
    records += [measurement("base", number, rate=rate) for number, rate in enumerate(base)]
    return analyse.analyse(results(records), "base").figures[SECTION, "hello", "fast"]


def test_a_ratio_is_paired_by_round_so_that_drift_cancels() -> None:
    figure = compare([20_000.0, 10_000.0, 5_000.0], [10_000.0, 5_000.0, 2_500.0])
    assert figure.ratio is not None
    assert figure.ratio.value == pytest.approx(2.0)
    assert figure.ratio.spread == pytest.approx(0.0, abs=1e-9)
    assert figure.relation is Relation.DIFFERENT


def test_a_ratio_whose_interval_reaches_one_and_beyond_is_undecided() -> None:
    figure = compare([10_400.0, 10_100.0, 9_900.0], [10_000.0, 10_000.0, 10_000.0])
    assert figure.relation is Relation.UNKNOWN
    assert figure.leads


def test_a_difference_within_the_margin_is_equal_whatever_the_interval() -> None:
    assert compare([10_100.0] * 3, [10_000.0] * 3).relation is Relation.EQUAL


def test_cpu_ratios_are_paired_by_round_so_that_drift_cancels() -> None:
    records = [
        measurement(name, number, server_cpu_s=cpu_s * slowdown)
        for name, cpu_s in (("fast", 0.2), ("base", 0.4))
        for number, slowdown in enumerate((1.0, 1.3, 1.7))
    ]
    figure = analyse.analyse(results(records), "base").figures[SECTION, "hello", "fast"]
    assert figure.cpu_ratio is not None
    assert figure.cpu_ratio.value == pytest.approx(0.5)
    assert figure.cpu_ratio.spread == pytest.approx(0.0, abs=1e-9)


def test_a_percentile_needs_a_hundred_values_beyond_it() -> None:
    figure = only_figure(rounds())
    assert "p99" in figure.latency_ms
    assert "p99.9" not in figure.latency_ms


def test_there_is_no_ratio_to_an_absent_baseline() -> None:
    analysis = analyse.analyse(results(rounds()), "uvicorn")
    assert analysis.baselines == {"trial": None}
    assert all(figure.ratio is None for figure in analysis.figures.values())


# --- verdicts ---


def test_a_good_measurement_is_valid() -> None:
    assert only_figure(rounds()).verdict.word == VALID


SUSPICIOUS = {
    "limited by the load generator": {
        "server_share": 0.6,
        "server_cpus_idle_share": 0.4,
        "generator_share": 0.97,
    },
    "server not saturated, and no limiter named": {
        "server_share": 0.6,
        "server_cpus_idle_share": 0.4,
    },
    "other programs kept a CPU busy": {"foreign_share": 0.4},
    "the server ended connections that were to be kept": {"connections_lost": 500},
    "the hypervisor took CPU time away": {"steal_share": 0.1},
    "rate × latency is not the requests in flight (Little's law)": {
        "latency_us": {"mean": 5_000.0}
    },
    "counted for less than 1 s in all": {"elapsed_s": 0.2},
    "fewer than 24 requests in a window": {"rate": 8.0},
}


@pytest.mark.parametrize("kind", SUSPICIOUS)
def test_is_suspect(kind: str) -> None:
    verdict = only_figure(rounds(**SUSPICIOUS[kind])).verdict
    assert verdict.word == SUSPECT
    assert [reason.kind for reason in verdict.reasons] == [kind]


def test_a_noisy_figure_says_how_many_restarts_it_would_take() -> None:
    """Rates and costs of ×0.5 and ×2: of such restarts many more than three are needed."""
    records = [
        measurement("a", number, rate=10_000.0 * factor, server_cpu_s=0.98)
        for number, factor in enumerate((0.5, 1.0, 2.0))
    ]
    figure = only_figure(records)
    (rate,), (cost,) = figure.verdict.reasons, figure.cost_verdict.reasons
    assert rate.kind == "noisy: restarts differ by more than ±25%"
    assert cost.kind == "noisy: restarts differ in CPU time by more than ±25%"
    assert rate.detail.endswith("; 40 restarts would do")
    assert cost.detail == rate.detail


def test_an_even_cost_is_valid_where_the_rate_is_not() -> None:
    records = [
        measurement("a", number, rate=10_000.0 * factor, server_cpu_s=0.98 * factor)
        for number, factor in enumerate((0.5, 1.0, 2.0))
    ]
    figure = only_figure(records)
    assert (figure.verdict.word, figure.cost_verdict.word) == (SUSPECT, VALID)


def test_what_the_lab_itself_uses_of_the_generators_cpu_limits_like_the_generator() -> None:
    records = rounds(server_share=0.6, server_cpus_idle_share=0.4, generator_share=0.5)
    for record in records:
        record["usage"]["lab_share"] = 0.45
    assert only_figure(records).limiter == "generator"


def test_a_generator_that_is_busy_beside_a_saturated_server_is_no_doubt() -> None:
    assert only_figure(rounds(generator_share=0.97)).verdict.word == VALID


def test_too_few_restarts_are_suspect() -> None:
    kinds = [reason.kind for reason in only_figure(rounds()[:2]).verdict.reasons]
    assert "fewer than 3 restarts" in kinds


def test_restarts_that_differ_are_suspect() -> None:
    records = [measurement(round_=i, rate=rate) for i, rate in enumerate((5e3, 1e4, 2e4))]
    assert "noisy: restarts differ by more than ±25%" in [
        r.kind for r in only_figure(records).verdict.reasons
    ]


def test_jmeter_like_error_shares_are_failed() -> None:
    """Article 001 averaged runs with up to 8.5 % errors."""
    verdict = only_figure(rounds(errors=errors(timeout=500, reset=350))).verdict
    assert verdict.word == FAILED
    assert str(verdict.reasons[0]).startswith("more than 0.1% errors: 7.83%")


def test_a_few_resets_are_not() -> None:
    assert only_figure(rounds(errors=errors(reset=5))).verdict.word == VALID


def test_one_wrong_answer_is_failed() -> None:
    verdict = only_figure(rounds(errors=errors(content=1))).verdict
    assert (verdict.word, verdict.reasons[0].kind) == (FAILED, "wrong answers under load")


def test_a_wrong_answer_beside_the_measurement_is_failed() -> None:
    records = rounds()
    records[2]["fault"] = "wrong answer: hello: expected b'Welcome!\\n', got b''"
    verdict = only_figure(records).verdict
    assert verdict.word == FAILED
    assert "Welcome" in str(verdict.reasons[0])


def test_a_failed_figure_has_no_ratio_and_does_not_lead() -> None:
    records = [
        *rounds(),
        *(measurement("b", i, rate=9e4, errors=errors(content=3)) for i in range(3)),
    ]
    analysis = analyse.analyse(results(records), "a")
    failed = analysis.figures[SECTION, "hello", "b"]
    assert (failed.ratio, failed.leads) == (None, False)
    assert analysis.figures[SECTION, "hello", "a"].leads


def test_a_contestant_that_died_owes_failed_figures() -> None:
    records = rounds()
    records.append(
        {
            "kind": "fault",
            "contestant": "a",
            "round": 0,
            "experiment": "trial",
            "workers": 1,
            "again": False,
            "cells": [["pipelined", "hello"]],
            "message": "a was killed by signal 11; the end of its log:\n    oops",
        }
    )
    figures = analyse.analyse(results(records)).figures
    owed = figures["trial/pipelined", "hello", "a"].verdict
    assert owed.word == FAILED
    assert "killed by signal 11" in str(owed.reasons[0])
    assert figures[SECTION, "hello", "a"].verdict.word == VALID
