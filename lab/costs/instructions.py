"""Instructions per request of the server, by callgrind.

`instructions.py [--tree DIR] [--check | --keep] [NAME...]`

Each workload is served under valgrind by the package in `DIR/python` (default: this checkout) with the
release extension that was built there, and counted as counter.py says. `--tree` twice prints the ratio of
both.

`--check` compares with `instructions.json` beside this file and fails beyond 2 %, of all instructions beyond
3 %; `--keep` writes it.
Compared are the instructions within the extension, which are the same with every build of one version of
CPython, and of single requests all of them, where the interpreter is the very one that was kept. Counted
is the release profile, which the other checks have built already: with the quick one, without inlining
across crates, a change of a hot path shows otherwise than for users. A kind beyond the margin is counted
up to three times more, and has to be beyond it each time: with several requests a turn, a count has two
values, some 70 instructions apart, one for the life of a connection. All kinds together take 48 s of CPU
time.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counter import ROOT, TOGETHER, App, Cost, Workload, costs, show

if TYPE_CHECKING:
    from collections.abc import Mapping

KEPT = Path(__file__).with_suffix(".json")
# What is no change: the address of a table, or the order of two branches, moves a count by less.
MARGIN = 0.02
# All instructions of a request have two values, some 85 apart, one for the life of a server.
TOTAL_MARGIN = 0.03
RETRIES = 3
NATIVE_SOURCE = """
import msgspec
from citius import App

app = App()

class Item(msgspec.Struct):
    name: str
    price: float
    tags: list[str] = []

@app.get("/")
def hello():
    return "Welcome!\\n"

@app.get("/async")
async def coroutine():
    return "Welcome!\\n"

@app.post("/items")
def item(body: Item) -> Item:
    return body
"""
ASGI_SOURCE = """async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError
    body = b"Welcome!\\n"
    if scope["path"] == "/echo":
        body = (await receive())["body"]
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
"""
WSGI_SOURCE = """def application(environ, start_response):
    body = b"Welcome!\\n"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]
"""
# The first handler does not wait; the second starts a goroutine and waits for it.
COMPILED_SOURCE = """
from pathlib import Path
from citius import App, load_handlers

app = App()
handlers = load_handlers(Path(__file__).with_name("handlers.so"))
app.get("/hello/{name}", compiled=handlers["hello"])
app.get("/square", compiled=handlers["square"], serial=True)
"""
HANDLERS = """
#include <citius.h>

CITIUS_LIBRARY

int hello(const citius_request *request, citius_response *response) {
    citius_text name;
    int code = citius_param(request, 0, &name);
    if (code != CITIUS_OK) {
        return code;
    }
    citius_content_type(response, "text/plain");
    citius_print(response, "Welcome, ");
    return citius_write(response, name.data, name.size);
}

static void work(void *argument) {
    int64_t value = 7 * 7;
    citius_chan_send(argument, &value, sizeof value);
    citius_chan_release(argument);
}

int square(const citius_request *request, citius_response *response) {
    citius_chan *results = citius_chan_make(sizeof(int64_t), 0);
    int64_t value = 0;
    int code;
    (void)request;
    citius_go(work, citius_chan_retain(results));
    code = citius_chan_receive(results, &value, sizeof value);
    citius_chan_release(results);
    return code != CITIUS_OK ? code : citius_print_integer(response, value);
}
"""
ITEM = b'{"name":"a keyboard","price":49.5,"tags":["input","usb"]}'


NATIVE, ASGI = App(NATIVE_SOURCE), App(ASGI_SOURCE)
WSGI = App(WSGI_SOURCE, ("--interface", "wsgi", "--threads", "0"))
COMPILED = App(COMPILED_SOURCE, handlers=HANDLERS)
WORKLOADS = {
    "native": Workload(NATIVE),
    "native-pipelined": Workload(NATIVE, together=TOGETHER),
    "native-async": Workload(NATIVE, "/async"),
    "typed-json": Workload(NATIVE, "/items", ITEM),
    "asgi": Workload(ASGI),
    "asgi-receive": Workload(ASGI, "/echo", b"Welcome!\n"),
    "wsgi": Workload(WSGI),
    "h2": Workload(NATIVE, together=TOGETHER, http2=True),
}
# Counted if they are named, to compare trees: a C compiler has a part in them.
FURTHER = {
    "compiled": Workload(COMPILED, "/hello/world"),
    "compiled-pipelined": Workload(COMPILED, "/hello/world", together=TOGETHER),
    "goroutine": Workload(COMPILED, "/square"),
}
ALL = WORKLOADS | FURTHER


def interpreter() -> str:
    """Return which build of Python this is."""
    return f"{platform.python_version()} {' '.join(platform.python_build())} {platform.python_compiler()}"


def keep(found: Mapping[str, Cost]) -> None:
    """Write what was counted, with the interpreter."""
    kinds = {
        name: {"total": round(cost.total), "extension": round(cost.extension)}
        for name, cost in found.items()
    }
    KEPT.write_text(json.dumps({"python": interpreter(), "kinds": kinds}, indent=1) + "\n")


def differences(found: Mapping[str, Cost], kept: Mapping[str, Any], python: str) -> list[str]:
    """Return a sentence for each count that is not the kept one.

    All instructions are compared with the same interpreter alone, and only of single requests: those of
    several in a turn vary by more than the margin. Of another version of Python nothing can be compared.
    """
    if kept["python"].split(".")[:2] != python.split(".")[:2]:
        return [
            f"kept is Python {kept['python'].split()[0]}, this is {python.split()[0]}: run --keep"
        ]
    said: list[str] = []
    for name, cost in found.items():
        with_total = kept["python"] == python and ALL[name].together == 1
        for one in ("total", "extension") if with_total else ("extension",):
            own, known = getattr(cost, one), kept["kinds"].get(name, {}).get(one)
            if known is None:
                said.append(f"{name}: nothing is kept of it; run --keep")
            elif abs(own / known - 1) > (TOTAL_MARGIN if one == "total" else MARGIN):
                said.append(f"{name}, {one}: {own:,.0f}, kept {known:,} ({own / known - 1:+.1%})")
    return said


def main() -> None:
    """Count, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tree", type=Path, action="append", help="checkout with a release extension"
    )
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--check", action="store_true", help="fail where a count is not the kept one"
    )
    either.add_argument("--keep", action="store_true", help="keep what is counted")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(WORKLOADS)} (all); {', '.join(FURTHER)}",
    )
    given = parser.parse_args()
    trees = [tree.resolve() for tree in given.tree or [ROOT]]
    found = count_all(trees, given.names or list(WORKLOADS))
    if given.keep:
        keep(found)
    if given.check and (said := check(trees, found)):
        sys.exit(
            "\n".join(
                [*said, "if that is meant: instructions.py --keep, and say why in the commit"]
            )
        )


def count_all(trees: list[Path], names: list[str]) -> dict[str, Cost]:
    """Count and print; return the counts of the last tree."""
    found: dict[str, Cost] = {}
    for app in (NATIVE, ASGI, WSGI, COMPILED):
        own = [name for name in names if ALL[name].app is app]
        counted = [costs(tree, app, own, ALL) for tree in trees if own]
        for name in own:
            found[name] = counted[-1][name]
            show(name, [one[name] for one in counted])
    return found


def check(trees: list[Path], found: Mapping[str, Cost]) -> list[str]:
    """Return what is not as it was kept, in none of the counts."""
    kept = json.loads(KEPT.read_text())
    said = differences(found, kept, interpreter())
    for _ in range(RETRIES):
        again = [name for name in found if any(one.startswith(f"{name},") for one in said)]
        if not again:
            break
        print("again:", flush=True)
        said = differences(count_all(trees, again), kept, interpreter())
    return said


if __name__ == "__main__":
    main()
