"""The program behind ``.ci/run``: the order of checks, and what their ends mean."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def ci():
    spec = importlib.util.spec_from_file_location("ci", ROOT / "scripts" / "ci.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ci"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    yield module
    del sys.modules["ci"]


def test_every_check_depends_on_earlier_ones_and_calls_a_verb(ci) -> None:
    makefile = (ROOT / "Makefile").read_text()
    for checks in ci.LISTS.values():
        names: list[str] = []
        for check in checks:
            assert set(check.after) <= set(names), check
            names.append(check.name)
            program, verb, *_ = [*check.command.split(), ""]
            if program == "make":
                assert (
                    f"\n{verb.removeprefix('.venv/').replace('made/', '$(MADE)/')}:" in makefile
                ), verb
            else:
                assert (ROOT / program).stat().st_mode & 0o111, program
        assert len(set(names)) == len(names)


def test_a_check_waits_for_those_it_depends_on(ci) -> None:
    order: list[str] = []
    ran_b = threading.Event()

    def start(check):
        if check.name == "a":
            assert ran_b.wait(20)  # b runs beside it
        order.append(check.name)
        if check.name == "b":
            ran_b.set()
        return ci.Result("passed")

    checks = [ci.Check("a", "x"), ci.Check("b", "x"), ci.Check("c", "x", ("a", "b"))]
    assert list(ci.run(checks, start)) == ["b", "a", "c"]
    assert order == ["b", "a", "c"]


def test_two_run_at_once_and_idle_ones_beside_them(ci) -> None:
    running, most = set(), 0
    together = threading.Barrier(3)

    def start(check):
        nonlocal most
        running.add(check.name)
        most = max(most, len(running))
        if check.name in {"a", "b", "idle"}:
            together.wait(20)
        running.discard(check.name)
        return ci.Result("passed")

    checks = [ci.Check(name, "x", is_idle=name == "idle") for name in ("a", "b", "c", "d", "idle")]
    assert len(ci.run(checks, start)) == 5
    assert most == 3


def test_patient_ones_run_beside_two_and_in_lanes_that_are_free(ci) -> None:
    def started(running: str, waiting: str) -> str:
        """Return who starts: small letters are patient."""

        def check(name):
            return ci.Check(name, "x", is_patient=name.islower())

        ready = [check(name) for name in waiting]
        return "".join(
            one.name for one in ci.startable(ready, {name: check(name) for name in running}, {})
        )

    assert started("", "abABC") == "ABa"
    assert started("A", "abBC") == "Ba"
    assert started("Aa", "bBC") == "B"
    assert started("ABa", "bC") == ""
    assert started("A", "ab") == "a"
    assert started("", "abc") == "ab"
    assert started("a", "bc") == "b"


def test_a_patient_one_has_the_lowest_priority(ci, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(ci, "LOGS", tmp_path)
    assert ci.execute(ci.Check("a", "nice", is_patient=True)).outcome == "passed"
    assert (tmp_path / "a.log").read_text() == "19\n"
    ci.execute(ci.Check("b", "nice"))
    assert (tmp_path / "b.log").read_text() == f"{os.nice(0)}\n"


@pytest.mark.parametrize("outcome", ["failed", "missing"])
def test_nothing_starts_after_a_failure_of_the_gate(ci, outcome: str) -> None:
    started: list[str] = []

    def start(check):
        started.append(check.name)
        return ci.Result(outcome if check.name == "b" else "passed")

    checks = [
        ci.gate("a", "x"),
        ci.gate("b", "x", "a"),
        ci.Check("c", "x", ("a", "b")),
        ci.Check("d", "x"),
    ]
    with pytest.raises(ci.Stopped, match="^b$"):
        ci.run([checks[0], checks[1], checks[2]], start)
    assert started == ["a", "b"]


def test_the_end_of_the_gate_is_told_once(ci, capsys) -> None:
    checks = [ci.gate("a", "x"), ci.gate("b", "x"), ci.Check("c", "x", ("a",)), ci.Check("d", "x")]
    ci.run(checks, lambda check: ci.Result("failed" if check.name == "c" else "passed"))
    assert capsys.readouterr().out.count("the gate: passed, 0 s") == 1


def test_a_judge_that_fails_stops_nothing(ci) -> None:
    """Those after it begin when it has ended, whatever it found."""
    order: list[str] = []

    def start(check):
        order.append(check.name)
        if check.name == "a":
            raise OSError("no such program")
        return ci.Result("passed")

    results = ci.run([ci.Check("a", "x"), ci.Check("b", "x"), ci.Check("c", "x", ("a",))], start)
    assert [results[name].outcome for name in "abc"] == ["failed", "passed", "passed"]
    assert results["a"].lines == ("OSError('no such program')",)
    assert order.index("c") > order.index("a")


def test_what_an_end_means(ci) -> None:
    assert ci.judged(0, "fine\n", 2.0, 1.0) == ci.Result("passed", 2.0, 1.0)
    assert ci.judged(2, "assert 1 == 2\n", 2.0, 1.0) == ci.Result("failed", 2.0, 1.0)
    assert ci.judged(2, "a\nmissing: npm, for the client\n", 2.0, 1.0) == ci.Result(
        "missing", 2.0, 1.0, ("npm, for the client",)
    )
    assert ci.judged(0, "without: h2o: no package\n", 2.0, 1.0).lines == (
        "without h2o: no package",
    )


def test_a_check_whose_command_is_not_there_is_missing(ci) -> None:
    assert ci.execute(ci.Check("a", "true", needs="no-such-command")).outcome == "missing"


def test_output_is_kept_and_printed(ci, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setattr(ci, "LOGS", tmp_path)
    assert ci.execute(ci.Check("a", "echo hello")).outcome == "passed"
    assert ci.execute(ci.Check("b", "false")).outcome == "failed"
    assert 0 < ci.execute(ci.Check("c", f"{sys.executable} -c sum(range(10**6))")).cpu_s < 20
    assert (tmp_path / "a.log").read_text() == "hello\n"
    assert "hello\n" in capfd.readouterr().out


def test_the_summary_ends_with_what_failed(ci) -> None:
    results = {
        "a": ci.Result("failed", 2.0, 1.0),
        "b": ci.Result("passed", 3.4, 5.1, ("without h2o",)),
        "c": ci.Result("missing"),
    }
    assert ci.summary(results) == [
        "ci:   passed   b 3 s (CPU 5 s); without h2o",
        "ci:   missing  c",
        "ci:   failed   a 2 s (CPU 1 s)",
    ]


def test_a_list_that_does_not_exist_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/ci.py", "weekly"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "usage: ci.py [change|nightly]\n")
