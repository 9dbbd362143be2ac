"""The example of each section of ``docs/guides/drivers-and-orms.md``, served, with a real PostgreSQL."""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import httpx
import pytest
import servers
from citius import pg
from citius.testing.postgres import database, find_binaries
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/guides/drivers-and-orms.md"


def examples() -> dict[str, str]:
    """Return the code of each section by its heading."""
    found: dict[str, str] = {}
    heading = ""
    tokens = MarkdownIt("commonmark").parse(PAGE.read_text())
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            heading = token.content
        elif token.type == "fence" and token.info == "py":
            assert heading not in found, "one example a section"
            found[heading] = token.content
    return found


EXAMPLES = examples()


def test_each_section_has_an_example() -> None:
    headings = re.findall(r"^## (.*)", PAGE.read_text(), re.MULTILINE)
    assert list(EXAMPLES) == headings


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    if find_binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    with database() as url:
        execute(url, "CREATE TABLE item (id serial PRIMARY KEY, name text NOT NULL UNIQUE)")
        yield url


def execute(url: str, sql: str) -> None:
    async def main() -> None:
        async with pg.Pool(url, size=1) as pool:
            await pool.execute(sql)

    asyncio.run(main())


CASES: list[tuple[str, dict[str, str]]] = [(section, {}) for section in EXAMPLES]
CASES += [("SQLAlchemy 2", {"DRIVER": driver}) for driver in ("psycopg", "citius")]


def install_entry_points(folder: Path) -> None:
    """Put those of this package, which not every test environment installs, beside the application."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in points.items())]
    metadata = folder / "citius-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: citius\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("section", "env"), CASES, ids=[" ".join([section, *env.values()]) for section, env in CASES]
)
def test_the_example(section: str, env: dict[str, str], url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(EXAMPLES[section])
    install_entry_points(tmp_path)
    execute(url, "TRUNCATE item RESTART IDENTITY")
    serving = servers.citius("shop:app", tmp_path, DATABASE_URL=url, **env)
    try:
        with httpx.Client(base_url=serving.url, timeout=20) as client:
            added = [client.post(f"/items/name{n}") for n in range(3)]
            assert [(one.status_code, one.json()) for one in added] == [
                (201, 1),
                (201, 2),
                (201, 3),
            ]
            assert client.get("/items/2").json() == {"id": 2, "name": "name1"}
            assert client.get("/items/7").status_code == 404
            # A statement that fails is undone, and the pool serves on.
            assert client.post("/items/name0").status_code == 500
            with ThreadPoolExecutor(8) as threads:
                found = list(
                    threads.map(lambda n: client.get(f"/items/{n % 3 + 1}").json(), range(60))
                )
            assert found == [{"id": n % 3 + 1, "name": f"name{n % 3}"} for n in range(60)]
        assert serving.stop() == 0
    finally:
        serving.kill()
