"""The page: one HTML file that says what was measured, and whether to believe it.

A pure function of the result folder: no clock, no network, no randomness. It names no address,
runs no script, and carries everything it shows. The modules ``report_*`` and ``plot*`` decide what is
shown, as dataclasses; the templates in ``templates/`` are the markup. The same figures in the
terminal are ``report_terminal``.
"""

from __future__ import annotations

from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

from citius_lab import plot_marks, report_about, report_experiment, report_findings
from citius_lab import report_words as words
from citius_lab.figures import FAILED, SUSPECT, VALID
from citius_lab.render import render
from citius_lab.report_view import SIGNS, Badge, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.figures import Analysis
    from citius_lab.record import Results


def html(results: Results, analysis: Analysis) -> str:
    """Return the report as one page that needs nothing else."""
    view = View(results, analysis)
    run = results.run
    ended = results.of_kind("end")
    sections = [report_experiment.section(view, one) for one in run["experiments"]]
    style = resources.files("citius_lab").joinpath("report.css").read_text(encoding="utf-8")
    return render(
        "page.html",
        run=run,
        day=words.day(run),
        style=Markup(style),  # the lab's own file, not data
        interrupted=not ended or ended[-1]["interrupted"],
        counts=_counts(analysis),
        restarts=len({record["round"] for record in results.of_kind("measurement")}),
        conditions=report_about.conditions(view),
        legend=plot_marks.legend([view.family(name) for name in analysis.contestants]),
        findings=report_findings.findings(view),
        contents=list(_contents(view)),
        experiments=[section for section in sections if section is not None],
        failed=report_about.failed(view),
        suspect=report_about.suspect(view),
        cards=report_about.cards(view),
        environment=report_about.environment(view),
        again=str(run["environment"].get("lab_command", "")),
        limits=report_about.limits(view),
        how=report_about.HOW,
    )


def _counts(analysis: Analysis) -> list[Badge]:
    """Return how many figures have each verdict."""
    counts = Counter(figure.verdict.word for figure in analysis.figures.values())
    return [
        Badge(word, SIGNS[word], str(counts[word]))
        for word in (VALID, SUSPECT, FAILED)
        if counts[word]
    ]


def _contents(view: View) -> Iterable[tuple[str, str]]:
    yield "findings", "findings"
    for experiment in view.results.run["experiments"]:
        if view.sections(experiment["name"]):
            yield experiment["name"], experiment["name"]
    yield "doubts", "unreliable results"
    yield "contestants", "contestants"
    yield "environment", "environment"
    yield "limits", "how to read it"
