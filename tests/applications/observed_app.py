"""A server whose statements are measured; its database is in the variable DSN."""

# pyright: basic

import os

from citius import App, pg
from opentelemetry import trace

pool = pg.Pool(os.environ["DSN"], size=2, name="shop")
app = App(lifespan=pool.lifespan)
inner = App()
app.mount("/inner", inner)


@app.get("/add/{a}")
async def add(a: int) -> int:
    return await pool.fetch_value("SELECT $1::int + 1", a)


@app.get("/many")
async def many() -> list:
    async with pool.transaction() as tx:
        return await tx.fetch_many("select $1::int", [(1,), (2,)])


@app.get("/wrong")
async def wrong() -> str:
    try:
        await pool.fetch("SELECT 1 / $1::int", 0)
    except pg.ServerError as error:
        return error.sqlstate
    return ""


@app.get("/own-span")
async def own_span() -> str:
    parent = trace.get_current_span()
    own = trace.NonRecordingSpan(
        trace.SpanContext(parent.get_span_context().trace_id, 7, False, trace.TraceFlags(1))
    )
    with trace.use_span(own):
        await pool.execute("SELECT 7")
    return "spanned"


@inner.get("/span")
def span() -> str:
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}-{context.span_id:016x}"


@app.get("/later", blocking=True)
def later() -> str:
    return span()
