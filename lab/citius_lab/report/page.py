"""The page: one HTML file that says what was measured, and whether to believe it.

A pure function of the result folder: no clock, no network, no randomness. It names no address and
carries everything it shows. Its one script sorts tables by the column that is chosen (``report.js``);
without it nothing is missing, and its policy lets no other run. The modules ``report_*`` and ``plot*``
decide what is shown, as dataclasses; the templates in ``templates/`` are the markup. The same figures
in the terminal are ``report_terminal``.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from importlib import resources
from typing import TYPE_CHECKING

from markupsafe import Markup

from citius_lab.judge.figures import FAILED, SUSPECT, VALID
from citius_lab.report import words
from citius_lab.report.plots import marks
from citius_lab.report.render import render
from citius_lab.report.sections import about
from citius_lab.report.sections import experiment as report_experiment
from citius_lab.report.view import SIGNS, Badge, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.judge.figures import Analysis
    from citius_lab.record import Results


def html(results: Results, analysis: Analysis) -> str:
    """Return the report as one page that needs nothing else."""
    view = View(results, analysis)
    run = results.run
    ended = results.of_kind("end")
    sections = [report_experiment.section(view, one) for one in run["experiments"]]
    script = _own("report.js")
    return render(
        "page.html",
        run=run,
        day=words.day(run),
        style=_own("report.css"),
        script=script,
        policy=_policy(script),
        interrupted=not ended or ended[-1]["interrupted"],
        counts=_counts(analysis),
        restarts=len({record["round"] for record in results.of_kind("measurement")}),
        conditions=about.conditions(view),
        legend=marks.legend([view.family(name) for name in analysis.contestants]),
        too_noisy=_too_noisy(view),
        contents=list(_contents(view)),
        experiments=[section for section in sections if section is not None],
        failed=about.failed(view),
        suspect=about.suspect(view),
        cards=about.cards(view),
        environment=about.environment(view),
        again=str(run["environment"].get("lab_command", "")),
        records=view.raw_records(),
        limits=about.limits(view),
        how=about.HOW,
    )


def _own(name: str) -> Markup:
    """Return a file of the lab that stands in the page as it is, unlike data."""
    return Markup(resources.files("citius_lab.report").joinpath(name).read_text(encoding="utf-8"))


def _policy(script: str) -> Markup:
    """Return what the page may do: show itself, and run this script; it may load nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return Markup(f'<meta http-equiv="Content-Security-Policy" content="{rules}">')


def _counts(analysis: Analysis) -> list[Badge]:
    """Return how many figures have each verdict."""
    counts = Counter(figure.verdict.word for figure in analysis.figures.values())
    return [
        Badge(word, SIGNS[word], str(counts[word]))
        for word in (VALID, SUSPECT, FAILED)
        if counts[word]
    ]


def _too_noisy(view: View) -> list[str]:
    """Return why cases are not ranked, once for each experiment that has such."""
    found = (view.analysis.too_noisy(f"{one['name']}/") for one in view.results.run["experiments"])
    return [why for why in found if why is not None]


def _contents(view: View) -> Iterable[tuple[str, str]]:
    for experiment in view.results.run["experiments"]:
        if view.sections(experiment["name"]):
            yield experiment["name"], experiment["name"]
    yield "doubts", "unreliable results"
    yield "contestants", "contestants"
    yield "environment", "environment"
    yield "records", "records"
    yield "limits", "how to read it"
