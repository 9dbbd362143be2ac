"""The example of each page of ``docs/guides/databases/``, served, with a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import servers
from citius import pg
from citius.testing.postgres import database, find_binaries
from markdown_it import MarkdownIt

PAGES = sorted((Path(__file__).parents[2] / "docs/guides/databases").glob("*.md"))


def example(page: Path) -> str:
    tokens = MarkdownIt("commonmark").parse(page.read_text())
    return next(token.content for token in tokens if token.type == "fence" and token.info == "py")


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


CASES = [(page, {}) for page in PAGES]
# `postgresql+citius` is an entry point of an installed package, which this one is not here: tests/pg has it.
CASES += [(page, {"DRIVER": "psycopg"}) for page in PAGES if page.stem == "sqlalchemy"]


@pytest.mark.parametrize(
    ("page", "env"), CASES, ids=[" ".join([page.stem, *env.values()]) for page, env in CASES]
)
def test_the_example(page: Path, env: dict[str, str], url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(example(page))
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
