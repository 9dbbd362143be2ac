"""What PostgreSQL itself takes for a request, by how its statements are sent.

`postgres.py [--instructions] [--setting NAME=VALUE...] [KIND...]`

The statements of the workloads db-one, db-rows, db-queries and db-updates are sent over one connection,
one request after the other, by a client that does nothing else; so no client that has these statements
executed takes less. The forms are those of `citius.pg`; of pgx, which asks at each execution what the
rows look like; and one Sync for each statement.

Printed is the CPU time of the server process per request, the least of the rounds, in which the forms
take turns. With `--instructions` it is what callgrind counts there, without the kernel: the same on a busy
machine.
"""

from __future__ import annotations

import argparse
import random
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from citius.testing.postgres import Server, find_binaries
from counter import total_of
from lab_database import SETTINGS, TABLES, lab_database

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

ITEMS = (
    "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count "
    "FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3"
)
STATEMENTS = {
    "world": ("SELECT id, randomnumber FROM world WHERE id = $1", 1, 2),
    "read": ("SELECT id, randomnumber FROM changing WHERE id = $1", 1, 2),
    "write": ("UPDATE changing SET randomnumber = $2 WHERE id = $1", 2, 0),
    "items": (ITEMS, 3, 9),
}
REQUESTS = {"one": 20_000, "rows": 4000, "queries": 2000, "updates": 3000}
FORMS = ("citius.pg", "pgx", "a Sync each")
SYNC = b"S\0\0\0\x04"
EXECUTE = b"E\0\0\0\x09\0\0\0\0\0"
DESCRIBE = b"D\0\0\0\x06P\0"
BINARY = b"\0\x01"


class Client:
    """A session, with the statements prepared."""

    def __init__(self, directory: str, settings: Sequence[str]) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(120)
        self._socket.connect(f"{directory}/.s.PGSQL.5432")
        words = ["user", "tester", "database", "postgres"]
        for setting in settings:
            words += setting.split("=", 1)
        body = struct.pack("!I", 196608) + b"".join(word.encode() + b"\0" for word in words) + b"\0"
        self._socket.sendall(struct.pack("!I", len(body) + 4) + body)
        self.process = struct.unpack("!I", self._until_ready(1)[b"K"][:4])[0]
        for name, (sql, _, _) in STATEMENTS.items():
            self.ask(message(b"P", f"{name}\0{sql}\0\0\0".encode()) + SYNC, 1)

    def ask(self, messages: bytes, syncs: int) -> None:
        """Send, and read what comes up to so many ends of requests."""
        self._socket.sendall(messages)
        self._until_ready(syncs)

    def close(self) -> None:
        """Say goodbye, and wait until the server process is gone."""
        self._socket.sendall(message(b"X", b""))
        while self._socket.recv(4096):
            pass
        self._socket.close()

    def _until_ready(self, count: int) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        rest = b""
        while count:
            rest += self._socket.recv(65536)
            at = 0
            while at + 5 <= len(rest):
                length = int.from_bytes(rest[at + 1 : at + 5]) + 1
                if at + length > len(rest):
                    break
                tag, body = rest[at : at + 1], rest[at + 5 : at + length]
                if tag == b"E":
                    raise SystemExit(f"postgres: {body!r}")
                if tag == b"K":
                    found[tag] = body
                count -= tag == b"Z"
                at += length
            rest = rest[at:]
        return found


def message(tag: bytes, body: bytes) -> bytes:
    """Return a message of the protocol."""
    return tag + struct.pack("!I", len(body) + 4) + body


def bind(name: str, values: Sequence[int]) -> bytes:
    """Return a Bind of a prepared statement, all in binary, as both clients send it."""
    _, _, columns = STATEMENTS[name]
    # The limit of `items` is a bigint, all else an integer.
    size = [8 if name == "items" and at == 2 else 4 for at in range(len(values))]
    parameters = b"".join(
        struct.pack("!I", wide) + value.to_bytes(wide)
        for value, wide in zip(values, size, strict=True)
    )
    count = struct.pack("!H", len(values))
    return message(
        b"B",
        b"\0" + name.encode() + b"\0" + count + BINARY * len(values) + count + parameters
        + struct.pack("!H", columns) + BINARY * columns,
    )  # fmt: skip


def request(kind: str, dice: random.Random) -> list[list[tuple[str, tuple[int, ...]]]]:
    """Return the statements of a request, in the groups in which they are sent together."""
    if kind == "rows":
        first = dice.randrange(900)
        return [[("items", (first, first + 9, 20))]]
    if kind == "updates":
        ids = sorted(dice.sample(range(1, 10_001), 5))
        return [
            [("read", (id,)) for id in ids],
            [("write", (id, dice.randrange(1, 10_001))) for id in ids],
        ]
    return [
        [("world", (dice.randrange(1, 10_001),)) for _ in range(20 if kind == "queries" else 1)]
    ]


def messages(kind: str, form: str, dice: random.Random) -> Iterator[tuple[bytes, int]]:
    """Yield what is sent for a request, and the number of responses to each."""
    for group in request(kind, dice):
        asked = DESCRIBE if form == "pgx" else b""
        each = [bind(name, values) + asked + EXECUTE for name, values in group]
        if form == "a Sync each":
            yield b"".join(one + SYNC for one in each), len(each)
        else:
            yield b"".join(each) + SYNC, 1


def ask(client: Client, kind: str, form: str, number: int) -> None:
    """Send so many requests, the same for each form."""
    dice = random.Random(1)
    for _ in range(number):
        for sent, syncs in messages(kind, form, dice):
            client.ask(sent, syncs)


def cpu_us(process: int) -> float:
    """Return the CPU time of a process."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1000


def times(directory: str, kind: str, settings: Sequence[str], rounds: int) -> dict[str, float]:
    """Return the CPU microseconds of a request by its form."""
    clients = {form: Client(directory, settings) for form in FORMS}
    least = dict.fromkeys(FORMS, float("inf"))
    number = REQUESTS[kind] // 4
    for form, client in clients.items():
        ask(client, kind, form, 200)
    for _ in range(rounds):
        for form, client in clients.items():
            before = cpu_us(client.process)
            ask(client, kind, form, number)
            least[form] = min(least[form], (cpu_us(client.process) - before) / number)
    for client in clients.values():
        client.close()
    return least


def instructions(directory: str, kind: str, settings: Sequence[str]) -> dict[str, float]:
    """Return the instructions of a request by its form: the difference of two sessions."""
    short, long = 200, 700

    def count(form: str, number: int) -> int:
        client = Client(directory, settings)
        ask(client, kind, form, number)
        client.close()
        return total(Path(directory, f"counted.{client.process}"))

    # Pages are read from files once.
    count(FORMS[0], long)
    return {form: (count(form, long) - count(form, short)) / (long - short) for form in FORMS}


def total(counts: Path) -> int:
    """Return the sum in a file of callgrind's, which is written after the session has ended."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if counts.exists() and "totals:" in (dump := counts.read_text()):
            return total_of(dump)
        time.sleep(0.05)  # nothing tells when it is written
    raise SystemExit(f"postgres: there is no total in {counts}")


@contextmanager
def counted() -> Generator[str]:
    """A server under callgrind with the tables of the lab: the directory of its socket and of the counts."""
    binaries = find_binaries()
    assert binaries is not None, "PostgreSQL is installed"
    server = Server(binaries)
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        try:
            server.start(**SETTINGS)
            psql = [str(binaries / "psql"), "-X", "-q", "-d", server.url]
            subprocess.run(psql, input=TABLES.read_text(), text=True, check=True)
            server.stop()
            server._binaries = under_callgrind(binaries, Path(name), server.directory)
            server.start(**SETTINGS)
            yield str(server.directory)
        finally:
            server.remove()


def under_callgrind(binaries: Path, folder: Path, counts: Path) -> Path:
    """Make a folder whose `postgres` is executed by callgrind."""
    folder.chmod(0o755)
    (folder / "pg_isready").symlink_to(binaries / "pg_isready")
    program = folder / "postgres"
    valgrind = "valgrind --tool=callgrind --trace-children=yes"
    program.write_text(
        f'#!/bin/sh\nexec {valgrind} --callgrind-out-file="{counts}/counted.%p" {binaries}/postgres "$@"\n'
    )
    program.chmod(0o755)
    return folder


def show(kinds: Sequence[str], measure: Callable[[str], dict[str, float]], form: str) -> None:
    """Print a row for each kind."""
    print("| kind |" + "".join(f" {name} |" for name in FORMS))
    print("|---|" + "---:|" * len(FORMS))
    for kind in kinds:
        found = measure(kind)
        print(f"| {kind} |" + "".join(f" {found[name]:{form}} |" for name in FORMS), flush=True)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instructions", action="store_true", help="count by callgrind")
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(REQUESTS))
    given = parser.parse_args()
    kinds = given.kinds or list(REQUESTS)
    if given.instructions:
        with counted() as directory:
            show(kinds, lambda kind: instructions(directory, kind, given.setting), ",.0f")
    else:
        with lab_database() as (url, _):
            (directory,) = parse_qs(urlsplit(url).query)["host"]
            show(kinds, lambda kind: times(directory, kind, given.setting, given.rounds), ".1f")


if __name__ == "__main__":
    main()
