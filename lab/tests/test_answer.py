"""The page of the articles' question: it says what the kept results say, and nothing of other ones."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner
from synthetic import own_experiments

from citius_lab import record
from citius_lab.answer import page as answer_page
from citius_lab.answer import readme as answer_readme
from citius_lab.answer import tables
from citius_lab.cli import lab
from citius_lab.commands import answer as answer_command
from citius_lab.commands import keep
from citius_lab.definitions import answers, contestants, experiments
from citius_lab.errors import DefinitionError, LabError
from citius_lab.judge import analyse
from citius_lab.judge.figures import SUSPECT, VALID, Reason, Verdict
from citius_lab.judge.statistics import geometric_mean
from citius_lab.paths import lab_root
from citius_lab.report import words

if TYPE_CHECKING:
    from citius_lab.definitions.experiments import Experiment

PUBLISHED = lab_root() / "published"
DOCS = lab_root().parent / "docs"
ASKED = {name: one for name, one in own_experiments().items() if one.answer is not None}
ASKED = dict(sorted(ASKED.items(), key=lambda item: item[1].article.id if item[1].article else "~"))


@pytest.fixture(scope="module")
def kept() -> dict[str, tables.Kept]:
    found = [name for name in ASKED if (PUBLISHED / name).is_dir()]
    return {name: tables.read(PUBLISHED / name, f"lab/published/{name}") for name in found}


@pytest.fixture(scope="module")
def quick() -> tables.Kept:
    return tables.read(PUBLISHED / answer_readme.TABLE, "lab/published/quick")


def test_page_pictures_and_readme_are_those_of_the_kept_results() -> None:
    """A figure that is edited by hand, or a result kept without writing the page, shows here."""
    root = DOCS.parent
    written = answer_command.written(ASKED, PUBLISHED, (root / "README.md").read_text())
    assert {"README.md", "docs/must-you-leave-python.md"} < written.keys()
    for path, text in written.items():
        assert (root / path).read_text() == text, f"{path}: run `citius lab answer`"


def test_a_readme_without_its_marks_is_left_alone(
    quick: tables.Kept, kept: dict[str, tables.Kept]
) -> None:
    readme = "# Citius\n<!-- measured: begin -->\n"
    with pytest.raises(LabError, match=r"README\.md: the marks '<!-- measured: begin -->' and"):
        answer_readme.with_table(readme, quick, kept[answer_readme.COMPILED])


def test_the_readmes_table_marks_what_the_gates_doubt(
    quick: tables.Kept, kept: dict[str, tables.Kept]
) -> None:
    """Of each figure the cost and the rate: a doubtful rate of Citius marks every ratio to it."""
    loop = kept[answer_readme.COMPILED]
    place = ("quick/closed", "hello", "citius")
    figures = quick.analysis.figures
    doubt = Verdict(SUSPECT, (Reason("noisy"),))
    doubted = replace(figures[place], verdict=doubt, cost_verdict=doubt)
    analysis = replace(quick.analysis, figures={**figures, place: doubted})
    marks = f"{answer_readme.BEGIN}\nold\n{answer_readme.END}\nafter\n"
    text = answer_readme.with_table(marks, replace(quick, analysis=analysis), loop)
    row = next(line for line in text.splitlines() if line.startswith("| `hello` |"))
    first, *others = row.split(" | ")[1:]
    assert re.fullmatch(r"\*\*[\d.]+\?\*\*", first)
    assert all("?)" in cell for cell in others), row
    assert "old" not in text
    assert text.endswith(f"{answer_readme.END}\nafter\n")


def test_each_article_has_a_table_with_a_picture(kept: dict[str, tables.Kept]) -> None:
    articles = [one.article.id for one in ASKED.values() if one.article is not None]
    assert articles == ["000", "001", "002", "003", "004"]
    for one in ASKED.values():
        if one.article is not None:
            found = tables.rows(one, kept[one.name])
            assert all("today" in row.cells and "native" in row.cells for row in found), one.name
            assert one.answer is not None
            assert one.answer.picture


def test_kept_results_name_neither_this_machines_folders_nor_its_cgroup() -> None:
    for path in PUBLISHED.glob("*/*"):
        text = path.read_text()
        assert not re.search(r"[\"' =]/(?:home|root|work|tmp)/", text), path
        assert '"cgroup":' not in text, path


def test_a_kept_result_names_no_folder_of_the_contestants_python(tmp_path: Path) -> None:
    source = copy_of("falcon-go", tmp_path)
    text = (
        (source / "records.jsonl").read_text().replace('".venv/bin/citius"', '"/srv/a/bin/citius"')
    )
    assert "/srv/a" in text
    (source / "records.jsonl").write_text(text)
    own = keep.keep(source, tmp_path / "kept")
    assert "/srv/a" not in (own / "records.jsonl").read_text()


def test_a_kept_result_names_no_folder_of_its_own(tmp_path: Path) -> None:
    source = copy_of("falcon-go", tmp_path)
    text = (source / "run.json").read_text()
    said = text.replace("lab run falcon-go", f"lab run falcon-go --out {source}")
    assert said != text
    (source / "run.json").write_text(said)
    own = keep.keep(source, tmp_path / "kept")
    assert f"lab run falcon-go --out {source.name}" in (own / "run.json").read_text()


def test_a_kept_result_has_the_figures_of_the_whole_one(tmp_path: Path) -> None:
    """Keeping one that is kept changes nothing; what is left out is no part of a figure."""
    source = PUBLISHED / "falcon-go"
    own = keep.keep(source, tmp_path)
    first, second = (analyse.analyse(record.load(folder)) for folder in (source, own))
    assert first.figures == second.figures
    assert (own / "records.jsonl").read_text() == (source / "records.jsonl").read_text()


def copy_of(name: str, folder: Path) -> Path:
    own = folder / name
    own.mkdir(parents=True)
    for path in (PUBLISHED / name).iterdir():
        (own / path.name).write_bytes(path.read_bytes())
    return own


def test_a_result_of_another_version_is_refused(tmp_path: Path) -> None:
    own = copy_of("falcon-go", tmp_path)
    run = json.loads((own / "run.json").read_text())
    (own / "run.json").write_text(json.dumps({**run, "schema": record.SCHEMA + 1}))
    with pytest.raises(LabError, match=r"has schema 3, this lab reads 2"):
        tables.read(own, "kept")


def test_records_that_were_cut_off_are_refused(tmp_path: Path) -> None:
    own = copy_of("falcon-go", tmp_path)
    lines = (own / "records.jsonl").read_text().splitlines(keepends=True)
    (own / "records.jsonl").write_text("".join(lines[: len(lines) // 2]))
    with pytest.raises(LabError, match=r"records\.jsonl has no end: it was cut off"):
        tables.read(own, "kept")
    (own / "records.jsonl").write_text("".join([*lines[:3], *lines[5:]]))
    with pytest.raises(LabError, match=r"records\.jsonl has \d+ records, .*run\.json says \d+"):
        tables.read(own, "kept")


def test_an_interrupted_run_is_not_kept(tmp_path: Path) -> None:
    own = copy_of("falcon-go", tmp_path)
    text = (own / "records.jsonl").read_text()
    (own / "records.jsonl").write_text(text.replace('"interrupted":false', '"interrupted":true'))
    with pytest.raises(LabError, match="was interrupted; citius lab resume"):
        keep.keep(own, tmp_path / "kept")


def test_a_result_of_a_tree_with_local_changes_is_kept_only_on_demand(tmp_path: Path) -> None:
    own, into = copy_of("falcon-go", tmp_path), tmp_path / "kept"
    run = json.loads((own / "run.json").read_text())
    run["environment"]["commit"] = "0123456789ab with local changes"
    (own / "run.json").write_text(json.dumps(run))
    command = ["keep", str(own), "--into", str(into)]
    refused = CliRunner().invoke(lab, command)
    assert refused.exit_code != 0
    assert "measured on 0123456789ab with local changes" in " ".join(refused.output.split())
    assert not into.exists()
    assert CliRunner().invoke(lab, [*command, "--local-changes"]).exit_code == 0
    assert (into / "falcon-go" / "run.json").exists()
    run["environment"]["commit"] = "0123456789ab"
    (own / "run.json").write_text(json.dumps(run))
    assert CliRunner().invoke(lab, command).exit_code == 0


def test_a_result_with_other_workers_does_not_take_the_place_of_the_usual_one(
    tmp_path: Path,
) -> None:
    own = copy_of("falcon-go", tmp_path)
    run = json.loads((own / "run.json").read_text())
    for series in run["experiments"][0]["series"]:
        series["workers"] = 2
    (own / "run.json").write_text(json.dumps(run))
    refused = CliRunner().invoke(lab, ["keep", str(own), "--local-changes"])
    assert refused.exit_code == 1
    assert "was measured with --workers 2" in " ".join(refused.output.split())
    command = ["keep", str(own), "--local-changes", "--into", str(tmp_path / "kept")]
    assert CliRunner().invoke(lab, command).exit_code == 0


def test_keeping_says_whom_the_page_will_miss(tmp_path: Path) -> None:
    own = copy_of("falcon-go", tmp_path)
    text = (own / "records.jsonl").read_text()
    (own / "records.jsonl").write_text(text.replace('"go-net-http"', '"another"'))
    command = ["keep", str(own), "--local-changes", "--into", str(tmp_path / "kept")]
    said = CliRunner().invoke(lab, command).output
    assert "contestants that it has no figure of: go-net-http" in " ".join(said.split())


def test_an_experiment_can_stand_below_an_article(kept: dict[str, tables.Kept]) -> None:
    """Beside what the article published, and not among the sections of their own."""
    own = ASKED["rest"]
    assert own.answer is not None
    below = replace(own, name="again", article=None, answer=replace(own.answer, below="rest"))
    found = {"again": replace(kept["rest"], folder="lab/published/again")}
    page = answer_page.page({**ASKED, "again": below}, {**kept, **found})
    heading = f"## {own.answer.heading}\n"
    first, second, rest = page.split(heading)
    assert second.endswith("\n\n#")
    own_part = rest.partition("\n## ")[0]
    assert "| Rust (actix-web): 128 748<br>" in own_part
    assert "lab/published/again" in own_part
    assert "BlackSheep and axum" in rest
    assert "BlackSheep and axum (001" not in first


def test_only_an_article_has_something_below_it(tmp_path: Path) -> None:
    text = (experiments.own() / "multicore.toml").read_text()
    wrong = text.replace("[answer]\n", '[answer]\nbelow = "quick"\n')
    (tmp_path / "mine.toml").write_text(wrong)
    found = contestants.load([lab_root() / "contestants"])
    with pytest.raises(DefinitionError, match=r"mine\.toml: answer\.below: unknown 'quick'"):
        experiments.load([experiments.own(), tmp_path], found)


def test_the_page_is_not_measured_on_a_tree_with_local_changes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The results would be kept, and no commit would hold what they are of."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "citius_lab.processes.environment.commit", lambda: "0123456789ab with local changes"
    )
    done = CliRunner().invoke(lab, ["answer", "--measure", "--only", "falcon-go"])
    assert done.exit_code == 1
    said = " ".join(done.output.split())
    assert "this checkout is 0123456789ab with local changes: a commit that holds all" in said
    assert list(tmp_path.iterdir()) == []


def test_an_experiment_that_fails_leaves_the_others_and_what_was_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The other experiments are measured and kept; the failure is printed at the end, with exit code 1."""
    root = tmp_path / "checkout"
    published = root / "lab/published"
    kept_names = ("falcon-go", "japronto", "work-in-handler", "quick")
    for name in kept_names:
        copy_of(name, published)
    (root / "README.md").write_text((DOCS.parent / "README.md").read_text())
    before = (published / "japronto/records.jsonl").read_bytes()

    @click.command()
    @click.option("--name")
    @click.option("--out", type=click.Path(path_type=Path))
    @click.option("--budget", "budget_s", type=float)
    def run(name: str, out: Path, budget_s: float, **_: object) -> None:
        if name == "japronto":
            raise LabError("no contestant is left to measure")
        assert budget_s == own_experiments()[name].budget_s / 2
        out.parent.mkdir(parents=True, exist_ok=True)
        text = copy_of(name, out.parent).rename(out) / "run.json"
        text.write_text(text.read_text().replace('"started_at": 1', '"started_at": 2'))

    for place, value in (
        ("lab_root", lambda: root / "lab"),
        ("with_answer", lambda lab: {name: ASKED[name] for name in kept_names[:3]}),
        ("run_", run),
        ("environment.commit", lambda: "0123456789ab"),
        ("expect_a_commit_of", lambda folder: None),
    ):
        monkeypatch.setattr(f"citius_lab.commands.answer.{place}", value)
    monkeypatch.chdir(root)
    done = CliRunner().invoke(lab, ["answer", "--measure", "--budget-factor", "0.5"])
    assert done.exit_code == 1, done.output
    said = " ".join(done.output.split())
    assert "not kept: japronto: no contestant is left to measure" in said
    assert "the page has what was kept of them before" in said
    assert (published / "japronto/records.jsonl").read_bytes() == before
    for name in ("falcon-go", "work-in-handler", "quick"):
        assert json.loads((published / name / "run.json").read_text())["started_at"] > 2e9
    assert "# Must you leave Python?" in (root / "docs/must-you-leave-python.md").read_text()


def test_a_section_says_that_nothing_is_measured_yet(kept: dict[str, tables.Kept]) -> None:
    own = ASKED["http3"]
    assert own.answer is not None
    page = answer_page.page(ASKED, {name: one for name, one in kept.items() if name != "http3"})
    section = page.partition(f"### {own.answer.heading}\n")[2].partition("\n#")[0]
    assert own.answer.unmeasured in section
    assert "`citius lab run http3`" in section
    assert "| ---" not in section


def test_rows_of_a_case_are_compared_in_each_column(kept: dict[str, tables.Kept]) -> None:
    """What pipelining costs beside connections without it, in the words of the row that says so."""
    own = replace(kept["japronto"], folder="lab/published/japronto")
    experiment = ASKED["japronto"]
    assert experiment.answer is not None
    usual = next(row for row in experiment.answer.row if row.case == "hello")
    other = next(
        series.id
        for series in experiment.series
        if series.id != usual.series
        and own.figure(series.id, "hello", experiment.answer.columns["native"]) is not None
    )
    rows = (
        replace(usual, label="one"),
        answers.AnswerRow("hello", other, "two", over=usual.series),
    )
    answer = replace(experiment.answer, row=rows)
    found = tables.rows(replace(experiment, answer=answer), own)
    (said,) = answer_page.compared(answer, found)
    assert said.startswith("`hello`, two costs, beside one of the same server: ")
    first, second = (row.cells["native"].figure.cpu_by_round for row in found)
    both = first.keys() & second.keys()
    expected = geometric_mean([second[number] / first[number] for number in both])
    assert f"native handlers ×{words.times(expected)}" in said
    with pytest.raises(DefinitionError, match=r"answer\.row\[1\]\.over: unknown 'cuont'"):
        replace(answer, row=(rows[0], replace(rows[1], over="cuont"))).check(
            Path("x.toml"), ["hello"], [usual.series, other]
        )


def test_a_result_that_is_missing_is_named_with_what_runs_it(tmp_path: Path) -> None:
    copy_of("falcon-go", tmp_path)
    with pytest.raises(LabError, match=r"no kept result of quick, .*lab answer --measure"):
        answer_command.written(ASKED, tmp_path, "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"picture": "helo"}, r"answer\.picture: unknown 'helo'"),
        ({"columns": {"todya": "citius"}}, r"answer\.columns: unknown 'todya'"),
        (
            {"row": (answers.AnswerRow("hello", "cuont"),)},
            r"answer\.row\[0\]\.series: unknown 'cuont'",
        ),
        ({"row": (answers.AnswerRow("helo", "count"),)}, r"answer\.row\[0\]\.case: unknown 'helo'"),
    ],
)
def test_a_name_that_does_not_exist_is_said(change: dict[str, object], said: str) -> None:
    one = own_experiments()["falcon-go"]
    assert one.answer is not None
    ids = [series.id for series in one.series]
    with pytest.raises(DefinitionError, match=said):
        replace(one.answer, **change).check(Path("x.toml"), ["hello"], ids)  # type: ignore[arg-type]


def cell(contestant: str, us: float, kept: tables.Kept) -> tables.Cell:
    figure = next(iter(kept.analysis.figures.values()))
    assert figure.cpu_us is not None
    cost = replace(figure.cpu_us, value=us, low=us * 0.95, high=us * 1.05)
    by_round = dict.fromkeys(range(3), us)
    own = replace(figure, cpu_us=cost, cpu_by_round=by_round, cost_verdict=Verdict(VALID))
    return tables.Cell(contestant, own)


def test_sentences_follow_the_figures(kept: dict[str, tables.Kept]) -> None:
    """The same words would be wrong of other figures: no conclusion is written before its run."""
    from citius_lab.answer import sentences

    one: Experiment = ASKED["falcon-go"]
    costs = {"today": 100.0, "same": 20.0, "native": 10.0, "go": 40.0}
    source = kept["falcon-go"]

    def said(**changes: float) -> str:
        cells = {name: cell(name, us, source) for name, us in (costs | changes).items()}
        row = tables.Row("hello", "", "", cells)
        return " ".join(sentences.conclusions(one, [row]))

    assert "With nothing changed but the server, a request costs 20 % of" in said()
    assert "Go costs more than the cheapest way on Citius in `hello` (×4.00)." in said()
    assert "Go costs less in `hello` (×0.50)." in said(go=5.0)
    assert "Go about the same in `hello`." in said(go=10.5)
    # Of two compilers the cheaper one counts.
    assert "With the handler compiled, a request costs 4 % of" in said(compiled=8.0, cython=4.0)
    assert "the cheapest way on Citius in `hello` (×10.0)." in said(compiled=8.0, cython=4.0)


def test_a_codec_is_no_compiled_handler(kept: dict[str, tables.Kept]) -> None:
    from citius_lab.answer import sentences

    source = kept["falcon-go"]
    costs = {"today": 100.0, "native": 30.0, "compiled": 20.0, "go": 40.0}
    cells = {name: cell("citius", us, source) for name, us in costs.items()}
    cells["compiled"] = cell("citius-own-codec", 20.0, source)
    said = " ".join(sentences.conclusions(ASKED["rest"], [tables.Row("hello", "", "", cells)]))
    assert "With Citius's own decoder, a request costs 20 % of" in said
    assert "compiled" not in said


def test_a_doubt_of_either_figure_reaches_the_summary(kept: dict[str, tables.Kept]) -> None:
    from citius_lab.answer import sentences

    source = kept["falcon-go"]
    costs = {"today": 100.0, "native": 10.0, "go": 40.0}
    cells = {name: cell("citius", us, source) for name, us in costs.items()}
    row = tables.Row("hello", "", "", cells)
    assert sentences._times_go(row, "native") == "0.25"
    assert sentences._advice(row) == "stay, with handlers for Citius"
    go = cells["go"]
    doubted = replace(go.figure, cost_verdict=Verdict(SUSPECT, (Reason("noisy"),)))
    row = replace(row, cells=cells | {"go": replace(go, figure=doubted)})
    assert sentences._times_go(row, "native") == "0.25~"
    assert sentences._advice(row) == "stay, with handlers for Citius (doubted)"


def test_the_table_of_decisions_follows_the_figures(kept: dict[str, tables.Kept]) -> None:
    from citius_lab.answer import sentences

    source = kept["falcon-go"]

    def advice(**costs: float) -> str:
        cells = {name: cell("citius", us, source) for name, us in costs.items()}
        return sentences._advice(tables.Row("hello", "", "", cells))

    assert advice(today=90, same=11, native=5, go=10) == "stay"
    assert advice(today=90, same=30, native=11, go=10) == "stay, with handlers for Citius"
    assert advice(today=90, native=80, compiled=9, go=10) == "compile"
    assert advice(today=900, native=800, compiled=20, go=10).startswith("compile; leave if")
    assert advice(today=90, native=80, go=10) == "leave if this is most of the work"
    page = (DOCS / "must-you-leave-python.md").read_text()
    table = page.partition("## In a minute")[2].partition("**Stay")[0]
    assert table.count("\n| a ") >= 4


def test_an_articles_table_begins_with_what_it_published() -> None:
    page = (DOCS / "must-you-leave-python.md").read_text()
    # Those of the articles, and the one of article 000 on all CPUs.
    assert page.count("| published, requests/s of its machine |") == 6
    assert "| Rust (actix-web): 128 748<br>Go (fasthttp): 116 672<br>" in page
    assert "| Go 14 × Python |" in page


def test_a_cost_that_the_gates_doubt_is_marked_and_a_doubtful_rate_marks_none(
    kept: dict[str, tables.Kept],
) -> None:
    noisy = Verdict(SUSPECT, (Reason("noisy"),))
    found = cell("citius", 10.0, kept["falcon-go"]).figure
    own = tables.Cell("citius", replace(found, verdict=noisy, cost_verdict=Verdict(VALID)))
    doubted = replace(found, cost_verdict=noisy)
    row = tables.Row("hello", "", "", {"native": tables.Cell("citius", doubted)})
    assert answer_page.cell_text(row, "native", "cpu") == "10~"
    assert answer_page.cell_text(replace(row, cells={"native": own}), "native", "cpu") == "10"
    assert answer_page.cell_text(row, "go", "cpu") == "–"
