"""The page: one HTML file that says what was measured, and whether to believe it.

A pure function of the result folder: no clock, no network, no randomness. It names no address,
runs no script, and carries everything it shows. Its parts are the modules ``report_*``, its plots
``plot*``; the same figures in the terminal are ``report_terminal``.
"""

from __future__ import annotations

from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING

from citius_lab import plot_marks, report_about, report_experiment
from citius_lab import report_words as words
from citius_lab.figures import FAILED, SUSPECT, VALID
from citius_lab.markup import Markup, el, join
from citius_lab.report_view import SIGNS, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.figures import Analysis
    from citius_lab.record import Results


def html(results: Results, analysis: Analysis) -> str:
    """Return the report as one page that needs nothing else."""
    view = View(results, analysis)
    experiments = [report_experiment.html(view, one) for one in results.run["experiments"]]
    body = el(
        "body",
        _head(view),
        _contents(view),
        el("main", experiments),
        report_about.doubts(view),
        report_about.contestants(view),
        report_about.environment(view),
        report_about.limits(view),
    )
    style = resources.files("citius_lab").joinpath("report.css").read_text(encoding="utf-8")
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"Citius lab: {results.run['name']}, {words.day(results.run)}"),
        el("style", Markup(style)),
    )
    page = join([Markup("<!doctype html>"), el("html", head, body, lang="en")], "\n")
    # Lines of a size that editors and diffs can bear.
    return page.replace("><tr", ">\n<tr").replace("><section", ">\n<section") + "\n"


def _head(view: View) -> Markup:
    run, analysis = view.results.run, view.analysis
    counts = Counter(figure.verdict.word for figure in analysis.figures.values())
    badges = [
        el("span", f"{SIGNS[word]} {counts[word]} {word}", class_=f"badge {word}")
        for word in (VALID, SUSPECT, FAILED)
        if counts[word]
    ]
    pairs = [
        ("figures", badges),
        ("restarts", f"up to {_rounds(view)} of every server; each is one round"),
        *report_about.conditions(view),
    ]
    ended = view.results.of_kind("end")
    interrupted = not ended or ended[-1]["interrupted"]
    warning = "The run was interrupted; what was measured is shown."
    return el(
        "header",
        el("h1", f"Citius lab: {run['name']}"),
        el("p", words.day(run), class_="dim"),
        el("p", warning, class_="warning") if interrupted else None,
        el("dl", [(el("dt", key), el("dd", value)) for key, value in pairs], class_="pairs"),
        plot_marks.legend([view.family(name) for name in analysis.contestants]),
        class_="top",
    )


def _rounds(view: View) -> int:
    return len({record["round"] for record in view.results.of_kind("measurement")})


def _contents(view: View) -> Markup:
    return el("nav", [el("a", text, href=f"#{target}") for target, text in _targets(view)],
              aria_label="Contents")  # fmt: skip


def _targets(view: View) -> Iterable[tuple[str, str]]:
    for experiment in view.results.run["experiments"]:
        if view.sections(experiment["name"]):
            yield experiment["name"], experiment["name"]
    yield "doubts", "what not to build on"
    yield "contestants", "contestants"
    yield "environment", "environment"
    yield "limits", "how to read it"
