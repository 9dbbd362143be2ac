"""The entry of Citius for HttpArena; `grpc_app` adds the profiles of gRPC."""

import asyncio
import mmap
import os
import struct
import time
import zlib
from functools import cache
from operator import attrgetter
from pathlib import Path

import msgspec
from citius import (
    App,
    NotFound,
    Request,
    Response,
    Templates,
    WebSocket,
    json_response,
    pg,
)


class Rating(msgspec.Struct):
    score: int
    count: int


class Item(msgspec.Struct):
    id: int
    name: str
    category: str
    price: int
    quantity: int
    active: bool
    tags: list[str]
    rating: Rating


class Sold(Item):
    total: int


class Listing(msgspec.Struct):
    items: list[Sold]
    count: int


class Rows(msgspec.Struct):
    items: list[Item]
    count: int


class Page(msgspec.Struct):
    items: list[Item]
    total: int
    page: int
    limit: int


class Update(msgspec.Struct):
    name: str
    price: int
    quantity: int
    category: str = "electronics"


class Create(Update, kw_only=True):
    id: int


class Fortune(msgspec.Struct):
    id: int
    message: str


ITEMS = msgspec.json.decode(Path(os.environ["DATASET_PATH"]).read_bytes(), type=list[Item])
DATABASE = os.environ.get("DATABASE_URL")
# Each worker has its share of the connections that the database allows, and a few are left to others.
SHARE = int(os.environ.get("DATABASE_MAX_CONN", "256")) * 9 // 10 // len(os.sched_getaffinity(0))
pool = pg.Pool(DATABASE or "", size=max(1, SHARE))
app = App(lifespan=pool.lifespan if DATABASE else None)
app.static("/static", os.environ["STATIC_DIR"])


# --- baseline, pipelined, limited-conn, latency, h2, h2c, h3 -----------------


@app.get("/baseline11")
def add(a: int, b: int) -> str:
    return str(a + b)


@app.post("/baseline11")
def add_body(a: int, b: int, body: bytes) -> str:
    return str(a + b + int(body))


@app.get("/baseline2")
def add_two(a: int, b: int) -> str:
    return str(a + b)


@app.get("/pipeline")
def pipeline() -> str:
    return "ok"


# --- json, json-comp, json-tls, json-h2c -------------------------------------


@app.get("/json/{count:int}")
def listing(count: int, m: int = 1) -> Listing:
    found = [
        Sold(
            i.id,
            i.name,
            i.category,
            i.price,
            i.quantity,
            i.active,
            i.tags,
            i.rating,
            i.price * i.quantity * m,
        )
        for i in ITEMS[:count]
    ]
    return Listing(found, len(found))


# --- async -------------------------------------------------------------------


@app.get("/delay/{ms:int}")
async def delay(ms: int) -> str:
    await asyncio.sleep(min(ms, 10_000) / 1000)
    return str(ms)


# --- upload, echo-ws, echo-ws-pipeline, echo-ws-limited ----------------------


@app.post("/upload", stream=True)
async def upload(request: Request) -> str:
    total = 0
    async for piece in request.stream():
        total += len(piece)
    return str(total)


@app.websocket("/ws")
async def echo(ws: WebSocket) -> None:
    async for message in ws:
        await ws.send(message)


# --- fortunes ----------------------------------------------------------------


@cache
def templates() -> Templates:
    """Jinja2's, imported by a worker that is asked for them."""
    return Templates(Path(__file__).with_name("templates"))


@app.get("/fortunes")
async def fortunes(request: Request) -> Response:
    rows = await pool.fetch("SELECT id, message FROM fortune", as_=Fortune)
    rows.append(Fortune(0, "Additional fortune added at request time."))
    rows.sort(key=attrgetter("message"))
    return templates()("fortunes.html", request, {"fortunes": rows})


# --- async-db, crud ----------------------------------------------------------

COLUMNS = "id, name, category, price, quantity, active, tags, rating_score, rating_count"
BETWEEN = f"SELECT {COLUMNS} FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3"
OF_CATEGORY = f"SELECT {COLUMNS} FROM items WHERE category = $1 ORDER BY id LIMIT $2 OFFSET $3"
ONE = f"SELECT {COLUMNS} FROM items WHERE id = $1"
CREATE = (
    "INSERT INTO items (id, name, category, price, quantity, active, tags, rating_score, rating_count) "
    "VALUES ($1, $2, $3, $4, $5, true, '[]', 0, 0) ON CONFLICT (id) DO UPDATE "
    "SET name = $2, category = $3, price = $4, quantity = $5"
)
UPDATE = "UPDATE items SET name = $2, price = $3, quantity = $4 WHERE id = $1"


def item_of(id, name, category, price, quantity, active, tags, score, count) -> Item:
    return Item(id, name, category, price, quantity, active, tags, Rating(score, count))


@app.get("/async-db")
async def between(min: int = 10, max: int = 50, limit: int = 50) -> Rows:
    found = await pool.fetch(BETWEEN, min, max, within(limit))
    return Rows([item_of(*row) for row in found], len(found))


@app.get("/crud/items")
async def of_category(category: str = "electronics", page: int = 1, limit: int = 10) -> Page:
    limit = within(limit)
    found = await pool.fetch(OF_CATEGORY, category, limit, (page - 1) * limit)
    return Page([item_of(*row) for row in found], len(found), page, limit)


@app.get("/crud/items/{id:int}")
async def read(id: int) -> Response:
    if (known := kept.get(id)) is not None:
        return Response(known, headers=HIT, content_type="application/json")
    found = await pool.fetch_one(ONE, id)
    if found is None:
        raise NotFound
    body = msgspec.json.encode(item_of(*found))
    kept.put(id, body)
    return Response(body, headers=MISS, content_type="application/json")


@app.post("/crud/items")
async def create(item: Create) -> Response:
    await pool.execute(CREATE, item.id, item.name, item.category, item.price, item.quantity)
    kept.drop(item.id)
    return json_response(item, status_code=201)


@app.put("/crud/items/{id:int}")
async def update(id: int, item: Update) -> Update:
    if await pool.execute(UPDATE, id, item.name, item.price, item.quantity) == 0:
        raise NotFound
    kept.drop(id)
    return item


def within(limit: int) -> int:
    return min(max(limit, 1), 50)


class Cache:
    """JSON of items for 200 ms, in memory that all workers share: a slot per id, checked by its sum."""

    HEAD = struct.Struct("<IIdH")  # checksum, id, time of expiry, length
    SLOTS, BYTES, TTL_S = 1 << 16, 512, 0.2

    def __init__(self, path: Path) -> None:
        with path.open("ab+") as file:
            file.truncate(self.SLOTS * self.BYTES)
            self.memory = mmap.mmap(file.fileno(), self.SLOTS * self.BYTES)

    def get(self, id: int) -> bytes | None:
        at = id % self.SLOTS * self.BYTES
        checksum, known, expires_at, length = self.HEAD.unpack_from(self.memory, at)
        if known != id or expires_at < time.monotonic():
            return None
        at += self.HEAD.size
        body = self.memory[at : at + length]
        # Another worker may be writing here: half of an entry is none.
        return body if zlib.crc32(body, id) == checksum else None

    def put(self, id: int, body: bytes) -> None:
        if id < 1 << 32 and self.HEAD.size + len(body) <= self.BYTES:
            at = id % self.SLOTS * self.BYTES
            head = self.HEAD.pack(
                zlib.crc32(body, id), id, time.monotonic() + self.TTL_S, len(body)
            )
            self.memory[at : at + self.HEAD.size + len(body)] = head + body

    def drop(self, id: int) -> None:
        at = id % self.SLOTS * self.BYTES
        self.memory[at : at + self.HEAD.size] = bytes(self.HEAD.size)


kept = Cache(Path(os.environ.get("CACHE_PATH", "/dev/shm/citius-arena-cache")))
HIT, MISS = {"X-Cache": "HIT"}, {"X-Cache": "MISS"}
