"""Instructions per request of the lab's shop, by kinds: `shop.py [--together N] [KIND...]`.

The shop is the contestant `shop-citius`, its requests are those of the workload `shop`, of which no two are
alike (`lab/workloads/shop.py`). The way of counting is that of `counter.py`: the whole server under
callgrind, each request a turn of the event loop of its own, or N of them. `mix` is the mean of all kinds by
their shares.
"""

from __future__ import annotations

import argparse
import random
from typing import Any

from counter import ROOT, App, Workload, counts

from citius_lab.definitions.workloads import Mixed, contract

# Fewer than are sent of a kind, and more than a server keeps of the requests it has seen.
REQUESTS = 1000
STATUS = {"create": b"201", "delete": b"204", "wrong_key": b"401", "bad_body": b"422"}


def shop() -> App:
    """Return the contestant."""
    contestants = ROOT / "lab" / "contestants"
    shared = str(contestants / "shared" / "python")
    source = (contestants / "shop-citius" / "app.py").read_text()
    return App(f"import sys\nsys.path.insert(0, {shared!r})\n{source}")


def encoded(one: Mixed) -> bytes:
    """Return a request of the workload as it is sent."""
    fields = [("Host", "127.0.0.1"), *one.headers]
    if one.body:
        fields.append(("Content-Length", str(len(one.body))))
    lines = [f"{one.method} {one.target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode() + one.body


def kinds(app: App, together: int) -> dict[str, tuple[Workload, int]]:
    """Return requests of each kind, and its share in percent."""
    code: Any = contract().workloads["shop"].code
    dice = random.Random(1)
    found: dict[str, tuple[Workload, int]] = {}
    for maker, share in code.KINDS:
        name = maker.__name__.removeprefix("_")
        requests = tuple(encoded(maker(dice, number)) for number in range(REQUESTS))
        status = STATUS.get(name, b"200")
        workload = Workload(app, together=together, status=status, requests=requests)
        found[name] = workload, share
    return found


def main() -> None:
    """Count, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--together", type=int, default=1, metavar="N", help="requests of a turn")
    parser.add_argument("names", nargs="*", metavar="KIND", help="of the workload's kinds; all")
    given = parser.parse_args()
    app = shop()
    found = kinds(app, given.together)
    names = given.names or list(found)
    counted = counts(ROOT, app, names, {name: workload for name, (workload, _) in found.items()})
    print("| kind | percent | instructions |\n|---|---:|---:|")
    for name in names:
        print(f"| {name} | {found[name][1]} | {counted[name]:,.0f} |")
    if len(names) == len(found):
        mean = sum(counted[name] * share for name, (_, share) in found.items()) / 100
        print(f"| mix | 100 | {mean:,.0f} |")


if __name__ == "__main__":
    main()
