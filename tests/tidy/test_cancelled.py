"""What is given in a block has a test that cancels its caller at every await, or a reason (issue 32 C4)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python/citius"

PG = "tests/pg/test_cancelled.py::test_a_pool"
REDIS = "tests/redis/test_cancelled.py::test_nothing_is_kept"
SQLITE = "tests/sqlite/test_cancelled.py::test_nothing_is_kept"
CLUSTER = "tests/cluster/test_cancelled.py::test_nothing_is_kept"
HTTP = "tests/http/test_cancelled.py::test_nothing_is_kept"
UPLOADS = "tests/uploads/test_cancelled.py::test_nothing_is_kept"
OPENS = "is the block of another one's __aenter__"
OF_A_TEST = "serves one test, which ends with it"

BLOCKS = {
    "cluster/locks.py Lock.hold": CLUSTER,
    "cluster/patience.py Patience.__aenter__": "has a timer, which fires into nothing",
    "cluster/presence.py Presence.enter": CLUSTER,
    "http/client.py Client.__aenter__": "tests/http/test_cancelled.py::test_a_start_that_is_cancelled",
    "http/client.py Client.lifespan": OPENS,
    "http/client.py Client.stream": HTTP,
    "http/gateway/upstreams.py Upstreams.lifespan": "has tasks that it ends; its client is in the list",
    "http/httpx.py Transport.__aenter__": "connects nothing",
    "pg/asyncpg.py Pool.lifespan": "is asyncpg's block",
    "pg/asyncpg.py _Acquiring.__aenter__": "tests/pg/test_cancelled.py::test_a_pool_of_asyncpg",
    "pg/connecting.py first_use": "tests/pg/test_cancelled.py::test_a_pool_that_is_opened",
    "pg/copying.py CopyOut.__aenter__": PG,
    "pg/cursors.py Cursor.__aenter__": PG,
    "pg/listening.py Listener.__aenter__": PG,
    "pg/pool.py Pool.__aenter__": "tests/pg/test_cancelled.py::test_a_pool_that_is_opened",
    "pg/pool.py Pool.lifespan": OPENS,
    "pg/transactions.py Transaction.__aenter__": PG,
    "redis/client.py Redis.__aenter__": "tests/redis/test_cancelled.py::test_a_client_that_is_opened",
    "redis/client.py Redis.lifespan": OPENS,
    "redis/sessions.py Acquiring.__aenter__": REDIS,
    "redis/subscriptions.py Subscription.__aenter__": REDIS,
    "redis/transactions.py Transaction.__aenter__": REDIS,
    "rpc/asynchronous.py AsyncClient.__aenter__": "connects nothing: the first call does",
    "sqlite/cursors.py Cursor.__aenter__": SQLITE,
    "sqlite/pool.py Pool.__aenter__": "tests/sqlite/test_cancelled.py::test_a_pool_that_is_opened",
    "sqlite/pool.py Pool.lifespan": OPENS,
    "sqlite/transactions.py Transaction.__aenter__": SQLITE,
    "testing/asyncclient.py AsyncClient.__aenter__": OF_A_TEST,
    "testing/asyncclient.py AsyncClient._exchange": OF_A_TEST,
    "testing/asyncclient.py AsyncClient._opened": OF_A_TEST,
    "testing/asyncclient.py AsyncClient.events": OF_A_TEST,
    "testing/asyncclient.py AsyncClient.stream": OF_A_TEST,
    "testing/asyncclient.py AsyncClient.websocket": OF_A_TEST,
    "testing/postgres.py _CopyOut.__aenter__": OF_A_TEST,
    "testing/postgres.py _Savepoint.__aenter__": OF_A_TEST,
    "testing/transport.py Transport.__aenter__": OF_A_TEST,
    "web/binding/depends/thread_dependencies.py _Entered.__aenter__": "is the application's block",
    "web/interop/mounts.py ASGIMount.hooks.lifespan": "is the application's block",
    "web/realtime/webtransport.py WebTransportStream.__aenter__": "has been opened before",
    "web/uploads/concatenation.py joined": UPLOADS,
    "web/uploads/store.py UploadDirectory._locked": UPLOADS,
    "web/uploads/store.py UploadDirectory.handed": UPLOADS,
    "web/uploads/store.py UploadDirectory.taken": UPLOADS,
}


def _blocks(node: ast.AST, name: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        own = f"{name}.{child.name}" if name else child.name
        if isinstance(child, ast.AsyncFunctionDef) and (
            child.name == "__aenter__"
            or any("asynccontextmanager" in ast.unparse(one) for one in child.decorator_list)
        ):
            yield own
        yield from _blocks(child, own)


def test_every_block_is_in_the_list() -> None:
    found = {
        f"{path.relative_to(PACKAGE)} {name}"
        for path in PACKAGE.rglob("*.py")
        for name in _blocks(ast.parse(path.read_text()), "")
    }
    assert found == set(BLOCKS)


def test_the_tests_exist_and_cancel() -> None:
    for block, test in BLOCKS.items():
        path, _, name = test.partition("::")
        if name:
            text = (ROOT / path).read_text()
            assert f"def {name}(" in text, block
            assert "at_every_await" in text, block
