"""The command ``citius lab answer``: the page of the articles' question, from kept results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from citius_lab.answer import page, tables
from citius_lab.answer import readme as answer_readme
from citius_lab.commands.base import Lab, lab
from citius_lab.commands.keep import (
    PUBLISHED,
    absent_from,
    expect_a_checkout,
    expect_a_commit,
    expect_a_commit_of,
    keep,
)
from citius_lab.commands.run import default_folder, run_
from citius_lab.errors import LabError
from citius_lab.paths import lab_root
from citius_lab.processes import callgrind, environment

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from citius_lab.definitions.experiments import Experiment


@lab.command("answer")
@click.option(
    "--measure", is_flag=True, help="Run every experiment of the page first, and keep it."
)
@click.option("--only", "names", multiple=True, metavar="NAME", help="Measure these alone.")
@click.option(
    "--budget-factor",
    type=click.FloatRange(0, min_open=True),
    default=1.0,
    help="How many times the experiments' own time they may take.",
)
@click.pass_context
def answer_(
    ctx: click.Context, measure: bool, names: tuple[str, ...], budget_factor: float
) -> None:
    """Write docs/must-you-leave-python.md, its pictures and the README's table from lab/published.

    With --measure an experiment that fails leaves what was kept of it before, and the others go on.
    """
    lab: Lab = ctx.obj
    expect_a_checkout("the page is", "`citius lab report FOLDER` draws a result")
    asked = with_answer(lab)
    measured = {answer_readme.TABLE: lab.experiments()[answer_readme.TABLE], **asked}
    if unknown := [name for name in names if name not in measured]:
        raise LabError(
            f"{', '.join(unknown)}: no part of the page; parts are {', '.join(measured)}"
        )
    if names and not measure:
        raise LabError("--only says what is measured: give --measure too")
    published = lab_root() / PUBLISHED
    failed: list[str] = []
    if measure:
        expect_a_commit("this checkout is", environment.commit())
        wanted = [one for name, one in measured.items() if not names or name in names]
        failed = _measure(ctx, wanted, published, budget_factor)
    try:
        _write(lab, asked, published)
    except LabError as error:
        raise LabError("\n".join([*failed, str(error)])) from error
    if failed:
        raise LabError("\n".join([*failed, "the page has what was kept of them before"]))


def _measure(
    ctx: click.Context, wanted: Iterable[Experiment], published: Path, budget_factor: float
) -> list[str]:
    """Run each experiment and keep its result; return a line for each that left none."""
    lab: Lab = ctx.obj
    failed: list[str] = []
    for experiment in wanted:
        out = default_folder(experiment.name)
        try:
            ctx.invoke(
                run_,
                name=experiment.name,
                out=out,
                budget_s=experiment.budget_s * budget_factor,
                names=(),
                baseline=None,
                seed=None,
                instructions=callgrind.missing() is None,
                dry_run=False,
            )
            expect_a_commit_of(out)
            keep(out, published)
        except LabError as error:
            failed.append(f"not kept: {experiment.name}: {error}")
            lab.console.print(failed[-1], soft_wrap=True, markup=False)
            continue
        if absent := absent_from(out, {experiment.name: experiment}):
            said = f"{experiment.name}: the page has no figure of {', '.join(absent)}"
            lab.console.print(said, soft_wrap=True, markup=False)
    return failed


def _write(lab: Lab, asked: dict[str, Experiment], published: Path) -> None:
    root = lab_root().parent
    for path, text in written(asked, published, (root / README).read_text()).items():
        own = root / path
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(text)
    lab.console.print(f"page: {root / PAGE}", soft_wrap=True, markup=False)


def with_answer(lab: Lab) -> dict[str, Experiment]:
    """Return the experiments that are parts of the page: the articles in their order, then the others."""
    found = [one for one in lab.experiments().values() if one.answer is not None]
    found.sort(key=lambda one: "~" if one.article is None else one.article.id)
    return {one.name: one for one in found}


def written(asked: dict[str, Experiment], published: Path, readme: str) -> dict[str, str]:
    """Return the page, its pictures and the README by their paths in the checkout.

    Args:
        asked: The experiments of the page.
        published: The folder of kept results.
        readme: The README as it is.

    Raises:
        LabError: A result is missing, was cut off, or is of another schema.
    """
    parts = (answer_readme.TABLE, *asked)
    absent = {name for name in parts if not (published / name).is_dir()}
    open_ = {
        name for name, one in asked.items() if one.answer is not None and one.answer.unmeasured
    }
    missing = [name for name in parts if name in absent - open_]
    if missing:
        raise LabError(
            f"no kept result of {', '.join(missing)} in {published}; `citius lab answer --measure` runs them"
        )

    def read(name: str) -> tables.Kept:
        return tables.read(published / name, f"lab/{PUBLISHED}/{name}")

    kept = {name: read(name) for name in asked if name not in absent}
    table, compiled = read(answer_readme.TABLE), kept[answer_readme.COMPILED]
    pictures = page.pictures(asked, kept)
    return {
        PAGE: page.page(asked, kept),
        **{f"docs/pictures/{name}": text for name, text in pictures.items()},
        README: answer_readme.with_table(readme, table, compiled),
    }


PAGE, README = "docs/must-you-leave-python.md", "README.md"
