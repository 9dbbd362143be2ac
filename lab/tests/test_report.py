"""What the page and the terminal say of records made of text."""

from __future__ import annotations

import dataclasses
import html
import io
import json
import re
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from everything import everything, shown
from jinja2 import UndefinedError
from rich.console import Console
from synthetic import CLOSED, measurement, own_experiments, results, rounds

from citius_lab.cli import lab
from citius_lab.judge import analyse
from citius_lab.judge.statistics import Interval
from citius_lab.report import page as report
from citius_lab.report import terminal
from citius_lab.report.plots import marks
from citius_lab.report.plots.rows import Row, row_plot
from citius_lab.report.plots.scale import Scale
from citius_lab.report.render import environment
from citius_lab.report.sections.summary import Summary, summary
from citius_lab.report.view import View

if TYPE_CHECKING:
    from pathlib import Path

    from citius_lab.judge.figures import Analysis
    from citius_lab.record import Results


def page_of(found: Results) -> str:
    return report.html(found, analyse.analyse(found))


@pytest.fixture(scope="module")
def largest() -> tuple[Results, Analysis]:
    """The largest run there is, which takes half a minute to analyse."""
    found = everything()
    return found, analyse.analyse(found)


@pytest.fixture(scope="module")
def page(largest: tuple[Results, Analysis]) -> str:
    return report.html(*largest)


def part(page: str, target: str) -> str:
    """The part of a page under the heading that has an id."""
    heading = r"<section[^>]*>\s*<h2>"
    (own,) = [
        one for one in re.split(f"(?={heading})", page) if re.match(rf'<section id="{target}"', one)
    ]
    return own


def text_of(markup: str) -> str:
    return html.unescape(re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", " ", markup)))


def test_everything_is_one_small_file_that_names_no_address(page: str) -> None:
    assert len(page.encode()) < 6_000_000  # of every experiment, with the records of each
    assert not re.search(
        r"https?://(?!127\.0\.0\.1|localhost)|src=|<link|<script |@import|url\(", page
    )
    assert page.count("<script>") == 1


def test_each_figure_leads_to_its_records() -> None:
    found = results([*rounds("a"), *rounds("<b> & c")])
    page = report.html(found, analyse.analyse(found))
    cells = [
        [int(line) for line in re.findall(r'<a href="#record-(\d+)">\1</a>', cell)]
        for cell in re.findall(r"<td[^>]*>(.*?)</td>", page)
        if "#record-" in cell
    ]
    assert cells == [[1, 2, 3], [4, 5, 6]]
    shown = dict(re.findall(r'<pre id="record-(\d+)">(.*?)</pre>', page))
    assert {int(line): json.loads(html.unescape(text)) for line, text in shown.items()} == dict(
        enumerate(found.records, 1)
    )


def test_the_same_bytes_come_of_a_folder_carried_elsewhere(tmp_path: Path) -> None:
    found = everything(n_rounds=1)
    here, there = tmp_path / "here", tmp_path / "far" / "there"
    here.mkdir()
    (here / "run.json").write_text(json.dumps(found.run))
    (here / "records.jsonl").write_text("\n".join(map(json.dumps, found.records)))
    first = CliRunner().invoke(lab, ["report", str(here)])
    assert first.exit_code == 0, first.output
    shutil.copytree(here, there)
    (there / "report.html").unlink()
    second = CliRunner().invoke(lab, ["report", str(there)])
    assert second.exit_code == 0, second.output
    assert (here / "report.html").read_bytes() == (there / "report.html").read_bytes()


def test_an_experiment_begins_with_the_cheapest_of_each_case(page: str) -> None:
    own = text_of(part(page, "rest"))
    assert own.index("CPU time per request, ×") < own.index("Least CPU time per request")
    assert own.index("Least CPU time per request") < own.index("Noise floor")


def summary_of(found: Results) -> Summary | None:
    view = View(found, analyse.analyse(found))
    return summary(view, view.analysis.sections)


def test_the_cheapest_stands_beside_the_baseline_with_its_interval_and_verdict() -> None:
    def row(**changes: Any) -> tuple[str, str, str, str]:
        found = summary_of(results([*rounds("a"), *rounds("citius", **changes)]))
        assert found is not None
        (one,) = found.rows
        assert one.verdict.badge is not None
        return one.by.text, one.times.text, one.times.small, one.verdict.badge.word

    assert row(server_cpu_s=0.49) == ("citius", "0.50", "0.5–0.5", "valid")
    assert row(server_cpu_s=1.96) == ("a", "1", "", "valid")
    assert row(server_cpu_s=0.49, foreign_share=0.9)[3] == "valid"
    assert row(server_cpu_s=0.49, steal_share=0.9)[3] == "suspect"


def test_what_is_too_noisy_is_told_at_the_top_and_ranked_nowhere() -> None:
    again = [
        measurement("a", number, rate=rate, again=True, server_cpu_s=0.98)
        for number, rate in enumerate((30_000.0, 160_000.0, 80_000.0))
    ]
    found = results([*rounds("a"), *rounds("citius", server_cpu_s=0.49), *again])
    assert summary_of(found) is None
    page = page_of(found)
    assert page.index("Too noisy to rank") < page.index("<main>")
    assert "Least CPU time per request" not in page


def test_every_experiment_has_its_noise_floor_and_its_cases(page: str) -> None:
    for experiment in shown():
        own = text_of(part(page, experiment.name))
        assert experiment.question in own
        assert f"Noise floor, {experiment.name}/" in own
        assert "Ties are within" in own


def test_an_articles_figures_stand_beside_todays_with_its_machine(page: str) -> None:
    rest = text_of(part(page, "rest"))
    assert "Intel i7-920 capped at 2.53 GHz" in rest
    assert "128\u202f700" in rest  # rust-actix, greeting, in four digits
    assert "What its protocol hides" in rest
    assert "64 connections, Go and Rust with 256" in rest
    assert "365 · 791 · 452" in text_of(part(page, "async"))
    assert "8.5%" in text_of(part(page, "async"))


def test_pipelined_results_stand_in_a_frame_of_their_own(page: str) -> None:
    for name in ("quick", "japronto"):
        own = part(page, name)
        frame = own[own.index("series apart") :]
        before = own[: own.index("series apart")]
        assert "Requests per second: unpipelined" in frame
        assert "Requests per second: pipelined" in frame
        assert "in flight" not in before
        assert "pipelining gives" in frame


def test_latency_is_drawn_over_fractions_of_capacity(page: str) -> None:
    own = part(page, "open")
    for percentile in ("p50", "p99"):
        assert f"Latency {percentile}, ms" in own
    assert own.count('class="line"') == 2 * len(own_experiments()["open"].contestants)
    assert "From the actual send" in own


def test_workers_are_compared_by_requests_per_core_second(page: str) -> None:
    own = text_of(part(page, "multicore"))
    assert "Requests per core-second, one worker" in own
    assert "Requests per core-second, as many workers as CPUs" in own
    assert "server and generator share CPUs" in own


def test_failures_have_their_reasons(page: str) -> None:
    doubts = text_of(part(page, "doubts"))
    assert "mrhttp was left out: needs Python 3.12" in doubts
    assert "it died; its log ends: no licence : rest/wrk: node-http/hello" in doubts
    assert "wrong answers under load" in doubts
    assert "it died" in text_of(part(page, "rest"))


def test_definitions_are_shown_with_what_a_worker_weighs(page: str) -> None:
    own = text_of(part(page, "contestants"))
    for word in ("JSON", "records as", "struct", "rules", "version", "serve --port 8000"):
        assert word in own
    assert "20.5 MB idle with 1 worker (1 process)" in own
    assert "20.5 MB for each further worker" in own


def test_ties_share_a_rank_and_say_so() -> None:
    found = results(
        rounds("a", rate=20_000.0) + rounds("b", rate=20_100.0) + rounds("c", rate=9_000.0), CLOSED
    )
    page = text_of(page_of(found))
    assert re.search(r"b 1= 20\u202f100", page), page
    assert re.search(r"a 1= 20\u202f000", page)
    assert re.search(r"c 2 9\u202f000", page)
    assert "≈1.00" in page or "≈1.01" in page


def test_costs_come_first_where_more_rates_are_in_doubt() -> None:
    cases = ("hello", "fibonacci")

    def order(**changes: float) -> tuple[bool, bool]:
        """Whether rates stand before costs on the page and in the terminal."""
        own = [one for name in "ab" for case in cases for one in rounds(name, case=case, **changes)]
        found = results(own, CLOSED)
        page = text_of(page_of(found))
        console = Console(width=100, record=True, file=io.StringIO())
        terminal.print_to(console, found, analyse.analyse(found))
        text = console.export_text()
        rates, costs = "Requests per second, times a's", "CPU time per request, times a's"
        return (
            page.index(rates) < page.index(costs),
            text.index("requests/s (trial") < text.index("CPU µs per request, server"),
        )

    assert order() == (True, True)
    assert order(foreign_share=0.5) == (False, False)


def test_the_cheapest_is_named_with_those_not_told_apart_from_it() -> None:
    def finding(*costs: float) -> tuple[str, str, str]:
        own = [*rounds("a", server_cpu_s=0.5), *(
            measurement("b", number, server_cpu_s=cost) for number, cost in enumerate(costs)
        )]  # fmt: skip
        found = results(own, CLOSED)
        table = summary_of(found)
        assert table is not None
        (row,) = table.rows
        return row.by.text, row.least.text, row.by.small

    assert finding(0.4, 0.4, 0.4) == ("b", "40", "")
    assert finding(0.3, 0.4, 0.55) == ("b", "40.4?", "not told apart: a")


def test_a_suspect_figure_is_marked_and_its_reason_named() -> None:
    found = results([*rounds("a"), *rounds("b", foreign_share=0.5)], CLOSED)
    page = page_of(found)
    assert page.count('class="mark hollow"') > 1  # the legend's, and that of b
    assert "other programs kept a CPU busy: b (50%)" in text_of(page)


def test_a_failed_figure_shows_no_number() -> None:
    wrong = {"status": 5}
    found = results([*rounds("a"), *rounds("b", rate=77_700.0, errors=wrong)], CLOSED)
    page = text_of(page_of(found))
    assert "77.7k" not in page
    assert "77\u202f700" not in page
    assert "wrong answers under load: b (15 status)" in page


def test_nothing_measured_of_the_pair_leaves_the_pipelined_alone() -> None:
    only = measurement("a", series="pipelined", pipeline=24)
    page = page_of(results([only]))
    assert "not measured" in page
    assert page.count("<figure>") == 2


def test_the_terminal_says_rank_latency_and_what_was_published(
    largest: tuple[Results, Analysis],
) -> None:
    console = Console(width=100, record=True, file=io.StringIO())
    terminal.print_to(console, *largest)
    text = console.export_text()
    assert max(map(len, text.splitlines())) <= 100
    assert "latency from when it was due, p50 / p99 ms (open: constant rate at 50%" in text
    assert re.search(r"Japronto +hello +1.21M", text)
    assert "then: Intel i7-920" in text
    assert re.search(r"#1\b", text)


def test_text_is_escaped_and_a_missing_value_is_an_error() -> None:
    template = environment().from_string('<p title="{{ x }}">{{ x }}</p>')
    assert template.render(x='<&"') == '<p title="&lt;&amp;&#34;">&lt;&amp;&#34;</p>'
    with pytest.raises(UndefinedError):
        template.render()


def test_what_a_contestant_says_of_itself_is_escaped(
    largest: tuple[Results, Analysis],
) -> None:
    found, analysis = largest
    hostile = dict.fromkeys(("label", "note"), "<script>alert('x')</script>")
    run = found.run | {"contestants": [one | hostile for one in found.run["contestants"]]}
    page = report.html(dataclasses.replace(found, run=run), analysis)
    assert "<script>alert" not in page
    assert page.count("<script") == 1
    assert "&lt;script&gt;" in page


def test_languages_have_shapes_of_their_own() -> None:
    corners = [shape for _, shape in marks.SHAPES.values()]
    assert len(set(corners)) == len(corners)


def test_marks_stand_where_the_values_are() -> None:
    scale = Scale.over([100.0, 10_000.0], 0.0, 200.0)
    assert scale.at(100.0) == 0.0
    assert scale.at(1000.0) == pytest.approx(100.0)
    assert scale.at(10_000.0) == 200.0
    assert 1000.0 in scale.ticks()


def test_a_whisker_far_out_does_not_press_the_values_together() -> None:
    rows = [
        Row("a", "go", "1", Interval(100.0, 0.001, 1e7)),
        Row("b", "rust", "2", Interval(200.0, 190.0, 210.0)),
    ]
    drawing = row_plot("t", rows)
    ticks = [text for _, text in drawing.grid]
    assert ticks[0] in ("10", "20")
    assert ticks[-1] in ("1k", "2k")
