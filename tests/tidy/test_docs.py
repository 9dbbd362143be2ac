"""What the documents say is so: links resolve, code blocks run, commands exist."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from citius.cli import cli
from markdown_it import MarkdownIt
from rig import Server

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "examples").rglob("*.md"),
        *(ROOT / "vectors").glob("*.md"),
    ]
)
VERBS = set(re.findall(r"^([a-z0-9-]+):.*##", (ROOT / "Makefile").read_text(), re.M))


def tokens(page: Path):
    return MarkdownIt("commonmark").enable("table").parse(page.read_text())


def anchors(page: Path) -> set[str]:
    """GitHub's names of the headings."""
    found = re.findall(r"^#+ +(.+?) *$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def broken_links(page: Path) -> Iterator[str]:
    """What leads nowhere."""
    for token in tokens(page):
        for child in token.children or []:
            target = child.attrs.get("href") or child.attrs.get("src") if child.attrs else None
            if not isinstance(target, str) or re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            linked = (page.parent / path) if path else page
            if not linked.exists():
                yield f"{page_id(page)}: {target} leads nowhere"
            elif anchor and linked.suffix == ".md" and anchor not in anchors(linked):
                yield f"{page_id(page)}: {target}: no such heading"


def test_links_resolve() -> None:
    assert [link for page in PAGES for link in broken_links(page)] == []


def test_modules_name_tests_that_exist() -> None:
    for path in (ROOT / "python").rglob("*.py"):
        for named in re.findall(
            r"\b(?:tests|scripts|docs)/[\w./-]+\.(?:py|md)\b", path.read_text()
        ):
            assert (ROOT / named).exists(), f"{path.relative_to(ROOT)}: there is no {named}"


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the code blocks. A Python block that begins with `# …` goes on with the last."""
    found: list[tuple[str, str]] = []
    for token in tokens(page):
        if token.type == "fence":
            text = token.content
            if token.info == "python" and text.startswith("# …\n") and found:
                before = next(text for info, text in reversed(found) if info == "python")
                text = before + text
            found.append((token.info, text))
    return found


PAGES_WITH_CODE = [page for page in PAGES if blocks(page)]


@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=page_id)
def test_blocks_run(page: Path, tmp_path: Path) -> None:
    """`python` runs; `console` is typed (`$ `) and answered; `py`, `sh`, `toml` are at least understood."""
    source = ""
    for info, text in blocks(page):
        if info == "python":
            save(page, text, source, tmp_path)
            source = text
            run_python(text, tmp_path)
        elif info == "console":
            run_console(text, source, tmp_path)
        elif info == "py":
            compile(text, page_id(page), "exec")  # runs where its framework is: tests/frameworks
        elif info == "sh":
            for line in re.sub(r"\\\n", " ", text).splitlines():
                check_command(line)
        else:
            known = ("toml", "text", "ini", "rust", "json", "c", "cython", "go", "html", "js", "")
            assert info in known, f"a block of {info or 'nothing'}"


def save(page: Path, text: str, before: str, directory: Path) -> None:
    """Write a block to the file that the page names: a service, and the tests that go on with it."""
    names = re.findall(r"Save this as `(\w+\.py)`", page.read_text())
    service = [name for name in names if not name.startswith("test_")]
    tests = [name for name in names if name.startswith("test_")]
    if before and text.startswith(before) and tests and service:
        lines = text[len(before) :].removeprefix("# …\n")
        (directory / tests[0]).write_text(f"from {service[0][:-3]} import app\n{lines}")
    elif service:
        (directory / service[0]).write_text(text)


def run_python(text: str, directory: Path) -> None:
    (directory / "block.py").write_text(text)
    program = (
        "import runpy; names = runpy.run_path('block.py')\n"
        "from citius import App; from citius.testing import Client\n"
        "[Client(app).close() for app in names.values() if isinstance(app, App)]\n"
        "[test() for name, test in names.items() if name.startswith('test_')]\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=directory, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{text}\n{done.stderr}"


def run_console(text: str, source: str, directory: Path) -> None:
    """Run a dialogue: `curl` against the block above it, and commands that end by themselves."""
    (directory / "block.py").write_text(source)
    dialogue = re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n?)*)", text, re.M)
    assert dialogue, text
    server = Server(["block.py", "--port", "0"], {}, directory).wait_ready()
    try:
        for command, expected in dialogue:
            if command.startswith(ENDING):
                assert mask(output_of(command, directory)) == mask(expected), command
                continue
            if not command.startswith("curl"):
                check_command(command)
                continue
            here = command.replace("localhost:8000", f"127.0.0.1:{server.port}")
            done = subprocess.run(
                shlex.split(here), capture_output=True, text=True, timeout=60, cwd=directory
            )
            assert done.stdout.strip().replace("\r", "") == expected.strip(), command
    finally:
        server.kill()


# Commands that end by themselves; their output is as the page shows it, but for times.
ENDING = ("citius serve --check-config", "pytest")


def output_of(command: str, directory: Path) -> str:
    """What a command of this environment prints."""
    done = subprocess.run(
        [sys.executable, "-m", *shlex.split(command)],
        cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
    )  # fmt: skip
    return done.stdout


def mask(output: str) -> str:
    """An output without what differs each time."""
    return re.sub(r"\d+\.\d+s", "… s", output).strip()


def check_command(line: str) -> None:
    """A command line of ours has to be one that exists."""
    words = shlex.split(line, comments=True)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    if not words:
        return
    program, *rest = words
    if program == "make":
        targets = [word for word in rest if "=" not in word]
        assert set(targets) <= VERBS, line
    elif Path(program).name == "citius" and rest[:1] == ["serve"]:
        command = cli.get_command(click.Context(cli), "serve")
        assert command is not None
        command.make_context("serve", rest[1:])
    elif Path(program).name == "citius":
        assert rest[0] in ("new", "dev", "routes", "openapi", "load", "lab", "--version"), line
    else:
        known = (
            "pip",
            "git",
            "cp",
            "docker",
            "echo",
            "buf",
            "kubectl",
            "systemctl",
            "systemd-analyze",
            "cd",
            "curl",
            "python",
            "cargo",
            "go",
            "rustup",
            "apt-get",
            "kill",
            "wrk",
            "pytest",
            "uvicorn",
            "hypercorn",
            "granian",
        )
        assert Path(program).name.removesuffix("3") in known, f"{line}: is that a command?"


def test_the_reference_is_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/reference.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_service_has_twelve_lines() -> None:
    first = next(text for info, text in blocks(ROOT / "README.md") if info == "python")
    assert len(first.strip().splitlines()) <= 12


def test_make_help_lists_every_verb() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)", text, re.M)
    assert phony is not None
    assert set(phony[1].split()) == VERBS
    env = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(
        ["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True, env=env
    )
    assert {line.split()[1] for line in done.stdout.splitlines()} == VERBS
