"""HttpArena's profiles as a raw ASGI application, with asyncpg and msgspec."""

import asyncio
import os
import pathlib
import time
import zlib
from urllib.parse import parse_qs

import asyncpg
import msgspec


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


class Update(msgspec.Struct):
    name: str
    price: int
    quantity: int


class Create(Update):
    id: int
    category: str


ITEMS = msgspec.json.decode(pathlib.Path(os.environ["DATASET_PATH"]).read_bytes(), type=list[Item])
TYPES = {
    ".css": "text/css", ".js": "text/javascript", ".html": "text/html", ".woff2": "font/woff2",
    ".svg": "image/svg+xml", ".webp": "image/webp", ".json": "application/json",
}  # fmt: skip
TEXT = (b"content-type", b"text/plain")
JSON = (b"content-type", b"application/json")
encode = msgspec.json.encode


# --- without a database ------------------------------------------------------


async def content(receive):
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


async def baseline(scope, receive):
    query = parse_qs(scope["query_string"])
    total = int(query[b"a"][0]) + int(query[b"b"][0])
    if scope["method"] == "POST":
        total += int(await content(receive))
    return 200, [TEXT], str(total).encode()


async def pipeline(scope, receive):
    return 200, [TEXT], b"ok"


async def delay(scope, receive):
    ms = int(scope["path"].rpartition("/")[2])
    await asyncio.sleep(ms / 1000)
    return 200, [TEXT], b"%d" % ms


async def listing(scope, receive):
    count = int(scope["path"].rpartition("/")[2])
    factor = int(parse_qs(scope["query_string"])[b"m"][0])
    found = [
        Sold(
            i.id, i.name, i.category, i.price, i.quantity, i.active, i.tags, i.rating,
            i.price * i.quantity * factor,
        )
        for i in ITEMS[:count]
    ]  # fmt: skip
    body = encode({"items": found, "count": len(found)})
    if b"gzip" not in accepted(scope):
        return 200, [JSON], body
    # Level 4 is the best of gzip's by HttpArena's formula: lab/httparena/README.md.
    squeeze = zlib.compressobj(4, zlib.DEFLATED, 31)
    return 200, [JSON, (b"content-encoding", b"gzip")], squeeze.compress(body) + squeeze.flush()


def accepted(scope):
    return next((value for name, value in scope["headers"] if name == b"accept-encoding"), b"")


async def upload(scope, receive):
    total = 0
    while True:
        message = await receive()
        total += len(message.get("body", b""))
        if not message.get("more_body", False):
            return 200, [TEXT], str(total).encode()


# Read once: the rules of tuned entries allow it.
FILES = {}
for path in pathlib.Path(os.environ["STATIC_DIR"]).iterdir():
    FILES[path.name] = path.read_bytes()


async def static(scope, receive):
    name = scope["path"].rpartition("/")[2]
    if name not in FILES:
        return 404, [TEXT], b"no such file"
    head = [(b"content-type", TYPES[pathlib.PurePath(name).suffix].encode())]
    for coding, suffix in ((b"br", ".br"), (b"gzip", ".gz")):
        if coding in accepted(scope) and name + suffix in FILES:
            return 200, [*head, (b"content-encoding", coding)], FILES[name + suffix]
    return 200, head, FILES[name]


# --- with one ----------------------------------------------------------------

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
TTL_S = 0.2


class Connection(asyncpg.Connection):
    """Without the statement that asyncpg sends when a connection goes back to the pool."""

    __slots__ = ()

    def get_reset_query(self):
        return ""


opening = None


async def pool():
    """Return the pool, which the first request opens."""
    global opening
    if opening is None:
        size = int(os.environ["DATABASE_MAX_CONN"])
        made = asyncpg.create_pool(
            os.environ["DATABASE_URL"], min_size=1, max_size=size, connection_class=Connection
        )
        opening = asyncio.ensure_future(open_pool(made))
    return await opening


async def open_pool(made):
    return await made


def item_of(row):
    *first, tags, score, count = row
    return Item(*first, msgspec.json.decode(tags), Rating(score, count))


async def between(scope, receive):
    query = parse_qs(scope["query_string"])
    low, high, limit = (int(query[name][0]) for name in (b"min", b"max", b"limit"))
    rows = await (await pool()).fetch(BETWEEN, low, high, min(max(limit, 1), 50))
    return 200, [JSON], encode({"items": [item_of(row) for row in rows], "count": len(rows)})


cached = {}


async def crud(scope, receive):
    method, id = scope["method"], scope["path"].removeprefix("/crud/items")[1:]
    if method == "POST":
        return await create(msgspec.json.decode(await content(receive), type=Create))
    if method == "PUT":
        return await update(int(id), msgspec.json.decode(await content(receive), type=Update))
    return await (read(int(id)) if id else pages(parse_qs(scope["query_string"])))


async def pages(query):
    page, limit = int(query[b"page"][0]), min(max(int(query[b"limit"][0]), 1), 50)
    values = query[b"category"][0].decode(), limit, (page - 1) * limit
    rows = await (await pool()).fetch(OF_CATEGORY, *values)
    found = [item_of(row) for row in rows]
    whole = {"items": found, "total": len(found), "page": page, "limit": limit}
    return 200, [JSON], encode(whole)


async def read(id):
    known = cached.get(id)
    if known is not None and known[0] > time.monotonic():
        return 200, [JSON, (b"x-cache", b"HIT")], known[1]
    row = await (await pool()).fetchrow(ONE, id)
    if row is None:
        return 404, [TEXT], b"no such item"
    body = encode(item_of(row))
    cached[id] = time.monotonic() + TTL_S, body
    return 200, [JSON, (b"x-cache", b"MISS")], body


async def create(item):
    values = item.id, item.name, item.category, item.price, item.quantity
    await (await pool()).execute(CREATE, *values)
    cached.pop(item.id, None)
    return 201, [JSON], encode(item)


async def update(id, item):
    done = await (await pool()).execute(UPDATE, id, item.name, item.price, item.quantity)
    if done == "UPDATE 0":
        return 404, [TEXT], b"no such item"
    cached.pop(id, None)
    return 200, [JSON], encode(item)


# --- the application ---------------------------------------------------------

ROUTES = {
    "baseline11": baseline, "baseline2": baseline, "pipeline": pipeline, "delay": delay, "json": listing,
    "upload": upload, "static": static, "async-db": between, "crud": crud,
}  # fmt: skip


async def app(scope, receive, send):
    if scope["type"] == "websocket":
        return await echo(receive, send)
    handler = ROUTES.get(scope["path"].split("/", 2)[1])
    if handler is None:
        status, headers, body = 404, [TEXT], b"no such page"
    else:
        status, headers, body = await handler(scope, receive)
    headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def echo(receive, send):
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})
