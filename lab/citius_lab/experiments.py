"""The named experiments: which protocols, which cases, who takes part, and how long it may take.

The articles' experiments run the article's protocol and, beside it, what the article left out.
Names of contestants that a checkout does not have are passed over; `citius lab list` shows who
there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from citius_lab.articles import ARTICLES, Article
from citius_lab.errors import LabError
from citius_lab.protocols import Load, Series
from citius_lab.workloads import CASES


@dataclass(frozen=True, slots=True)
class Experiment:
    """One question, asked of several contestants.

    Attributes:
        question: What its tables answer.
        baseline: What ratios refer to, if it takes part.
        budget_s: Seconds it may take by default, builds excluded.
        window_s: Seconds a window should have: there are as many rounds as that leaves time for.
        cases_of: Contestants that show only some cases.
        compares_wires: Whether its series differ in what is spoken, so that one contestant's figures in
            all of them are worth a table.
    """

    name: str
    title: str
    question: str
    contestants: tuple[str, ...]
    series: tuple[Series, ...]
    budget_s: float
    baseline: str = "uvicorn"
    window_s: float = 1.5
    article_id: str | None = None
    cases_of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    compares_wires: bool = False

    @property
    def article(self) -> Article | None:
        """The article whose protocol it runs."""
        return None if self.article_id is None else ARTICLES[self.article_id]

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data, the article's figures included."""
        return {
            "name": self.name,
            "title": self.title,
            "question": self.question,
            "baseline": self.baseline,
            "compares_wires": self.compares_wires,
            "series": [series.as_record() for series in self.series],
            "article": None if self.article is None else self.article.as_record(),
        }


def named(name: str) -> list[Experiment]:
    """Return the experiments that a name stands for.

    Raises:
        LabError: It stands for none.
    """
    if name == ALL:
        return [EXPERIMENTS[part] for part in PARTS_OF_ALL]
    if name not in EXPERIMENTS:
        known = ", ".join([*EXPERIMENTS, ALL])
        raise LabError(f"no experiment is called {name!r}; there are {known}")
    return [EXPERIMENTS[name]]


QUICK = Experiment(
    "quick",
    "Everything, briefly",
    "What does one core serve, with which server, when a request does a given piece of work?",
    ("citius", "citius-async", "uvicorn", "granian-rsgi", "go-net-http", "rust-axum", "rust-floor"),
    (
        Series(
            "closed",
            "closed",
            "closed loop",
            Load(),
            tuple(case.id for case in CASES if case.articles),
            is_article=False,
        ),
        Series(
            "pipelined",
            "pipelined",
            "pipelined, which no browser does",
            Load(connections=100, pipeline=24),
            ("hello",),
            beside="closed",
        ),
    ),
    270.0,
    # Half a second is 5000 requests or more of everything but the slow cases.
    window_s=0.45,
    # It shows what differs from `citius`; `verify` asks all of it.
    cases_of=(("citius-async", ("hello", "async")),),
)

REST = Experiment(
    "rest",
    "Python, PyPy, Go and Rust behind a REST service",
    "What does a small REST service cost in each language?",
    (
        "citius",
        "citius-own-codec",
        "citius-numba",
        "uwsgi-werkzeug",
        "pypy-uwsgi-werkzeug",
        "uvicorn",
        "granian-wsgi",
        "node-http",
        "go-fasthttp",
        "rust-actix",
        "rust-floor",
    ),
    (
        Series(
            "wrk",
            "wrk",
            "closed loop, 256 connections",
            Load(connections=256, threads=3, duration_s=15.0),
            (
                "hello",
                "parse-msgpack",
                "parse-msgpack-varied",
                "encode-json",
                "transfer-data",
                "million-loop",
            ),
            # Plain Python takes 60 ms a request: 256 of them would measure a queue of 15 s.
            connections={"million-loop": 64},
        ),
        Series(
            "wrk-64",
            "wrk",
            "closed loop, 64 connections, because somebody fails with 256",
            Load(connections=64, threads=3, duration_s=15.0),
            ("hello", "parse-msgpack", "encode-json", "transfer-data"),
            only_if_failed="wrk",
        ),
    ),
    630.0,
    "uwsgi-werkzeug",
    article_id="000",
    cases_of=(
        ("citius-own-codec", ("parse-msgpack", "parse-msgpack-varied")),
        ("citius-numba", ("million-loop",)),
    ),
)

ASYNC = Experiment(
    "async",
    "Asynchronous handlers in Python and Rust",
    "How many users who come within two seconds are served, and what is the capacity behind it?",
    (
        "blacksheep",
        "rust-axum",
        "rust-axum-4",
        "citius-async",
        "fastapi",
        "rust-floor",
    ),
    (
        Series(
            "users",
            "users",
            "6000 users in 2 s",
            Load(pace="users", users=6000, ramp_s=2.0),
            ("async", "fibonacci"),
            discard=1,
        ),
        Series(
            "capacity",
            "closed",
            "closed loop, what the ramp does not show",
            Load(),
            ("async", "fibonacci"),
            is_article=False,
        ),
    ),
    360.0,
    "blacksheep",
    article_id="001",
)

JAPRONTO = Experiment(
    "japronto",
    "A million requests per second",
    "What does pipelining change?",
    ("japronto", "citius", "uvicorn", "granian-rsgi", "go-fasthttp", "go-net-http", "rust-floor"),
    (
        Series(
            "unpipelined",
            "closed",
            "the same connections, unpipelined",
            Load(connections=100),
            ("hello",),
            is_article=False,
        ),
        Series(
            "pipelined",
            "pipelined",
            "24 requests in flight on each of 100 connections",
            Load(connections=100, pipeline=24),
            ("hello",),
            beside="unpipelined",
        ),
    ),
    150.0,
    "uvicorn",
    article_id="002",
)

FALCON_GO = Experiment(
    "falcon-go",
    "Falcon against Go",
    "What do 10 000 requests on as many connections show, and what a longer run?",
    ("gunicorn-falcon", "go-net-http", "go-fasthttp", "citius", "rust-floor"),
    (
        Series(
            "count",
            "count",
            "10 000 requests, 500 at a time, a connection each",
            Load(connections=500, keep_alive=False, requests=10_000),
            ("hello",),
        ),
        Series(
            "longer",
            "closed",
            "the same, for as long as the time allows",
            Load(connections=500, keep_alive=False),
            ("hello",),
            is_article=False,
        ),
        Series(
            "keep-alive",
            "count",
            "10 000 requests, 500 at a time, connections kept (ab -k)",
            Load(connections=500, requests=10_000),
            ("hello",),
            is_article=False,
        ),
    ),
    210.0,
    "gunicorn-falcon",
    article_id="003",
)

WORK_IN_HANDLER = Experiment(
    "work-in-handler",
    "A little work in the handler",
    "What is left of a fast server once the handler does something?",
    (
        "uvloop-httptools",
        "go-net-http",
        "go-fasthttp",
        "citius",
        "citius-numba",
        "citius-cython",
        "uvicorn",
        "rust-axum",
        "rust-actix",
    ),
    (
        Series(
            "path-length",
            "path-length",
            "0, 10 and 100 further characters",
            Load(connections=40, duration_s=10.0),
            ("classify-0", "classify-10", "classify-100"),
        ),
        Series(
            "loop",
            "closed",
            "a loop of a million steps, which the article does not have",
            Load(connections=8),
            ("million-loop",),
            is_article=False,
        ),
    ),
    330.0,
    "uvloop-httptools",
    article_id="004",
)

MULTICORE = Experiment(
    "multicore",
    "One worker and several",
    "How many requests does a core-second buy, with one worker and with all?",
    ("citius", "uvicorn", "go-net-http", "rust-axum"),
    (
        Series(
            "workers-1",
            "closed",
            "one worker",
            Load(connections=64),
            ("hello", "classify-100"),
            is_article=False,
        ),
        Series(
            "workers-n",
            "closed",
            "as many workers as CPUs",
            Load(connections=64),
            ("hello", "classify-100"),
            workers=0,
            is_article=False,
        ),
    ),
    240.0,
    "uvicorn",
)

OPEN = Experiment(
    "open",
    "Latency at a rate",
    "How long does a visitor wait, at fractions of each server's capacity and at a common rate?",
    ("citius", "citius-async", "uvicorn", "granian-rsgi", "go-net-http", "rust-axum"),
    (
        Series(
            "capacity",
            "closed",
            "capacity, closed loop",
            Load(connections=64),
            ("hello",),
            is_article=False,
        ),
        *(
            Series(
                f"open-{share:.0%}".rstrip("%"),
                "open",
                f"constant rate at {share:.0%} of the capacity",
                Load(pace="constant", connections=64, fraction=share, of="capacity"),
                ("hello",),
                is_article=False,
            )
            for share in (0.10, 0.25, 0.50, 0.75, 0.90)
        ),
        Series(
            "rate-2000",
            "open",
            "2000 requests/s for everybody, Poisson arrivals",
            Load(pace="poisson", connections=64, rate=2000.0),
            ("hello",),
            is_article=False,
        ),
    ),
    330.0,
    "uvicorn",
)

PEERS = Experiment(
    "peers",
    "The same greeting by every server",
    "What does each way into a Python server cost, native, ASGI and WSGI, when the handler does nothing?",
    (
        "citius",
        "citius-async",
        "citius-asgi",
        "citius-wsgi",
        "citius-gevent",
        "uvicorn",
        "hypercorn",
        "granian-asgi",
        "granian-rsgi",
        "granian-wsgi",
        "socketify",
        "robyn",
        "fastpysgi",
        "uwsgi",
        "japronto",
        "mrhttp",
        "rust-floor",
    ),
    (
        Series(
            "closed",
            "closed",
            "closed loop, 64 connections",
            Load(connections=64),
            ("hello",),
            is_article=False,
        ),
    ),
    180.0,
    window_s=1.0,
)

H2 = Experiment(
    "h2",
    "One server, six ways to ask it",
    "What do keep-alive, pipelining, TLS and multiplexing each change?",
    (
        "citius",
        "citius-asgi",
        "granian-rsgi",
        "granian-asgi",
        "hypercorn",
        "go-net-http",
        "rust-axum",
        "nghttpd",
        "h2o",
    ),
    (
        Series(
            "connections",
            "closed",
            "HTTP/1.1, a connection per request",
            Load(connections=32, keep_alive=False),
            ("hello",),
            is_article=False,
        ),
        Series(
            "keep-alive",
            "closed",
            "HTTP/1.1, keep-alive",
            Load(connections=32),
            ("hello",),
            is_article=False,
        ),
        Series(
            "pipelined",
            "pipelined",
            "HTTP/1.1, pipelined",
            Load(connections=32, pipeline=50),
            ("hello",),
            beside="keep-alive",
            is_article=False,
        ),
        Series(
            "h2c",
            "h2",
            "HTTP/2, multiplexed",
            Load(connections=32, http="2", streams=50),
            ("hello",),
        ),
        Series(
            "https",
            "closed",
            "HTTP/1.1 over TLS, keep-alive",
            Load(connections=32, tls=True),
            ("hello",),
            is_article=False,
        ),
        Series(
            "h2",
            "h2",
            "HTTP/2 over TLS, multiplexed",
            Load(connections=32, http="2", tls=True, streams=50),
            ("hello",),
        ),
    ),
    300.0,
    "granian-asgi",
    window_s=1.0,
    compares_wires=True,
)

REST_TLS = Experiment(
    "rest-tls",
    "The REST service, encrypted",
    "What is left of the differences once every byte is encrypted?",
    ("citius", "uvicorn", "granian-rsgi", "hypercorn", "go-net-http", "rust-axum"),
    (
        Series(
            "https",
            "closed",
            "HTTP/1.1 over TLS",
            Load(connections=64, tls=True),
            ("hello", "parse-msgpack", "encode-json", "transfer-data"),
            is_article=False,
        ),
        Series(
            "h2",
            "h2",
            "HTTP/2 over TLS",
            Load(connections=8, http="2", tls=True, streams=8),
            ("hello", "parse-msgpack", "encode-json", "transfer-data"),
            is_article=False,
        ),
    ),
    300.0,
    window_s=1.0,
)

RPC = Experiment(
    "rpc",
    "The same functions, called by another service",
    "What does a call cost that is no request?",
    ("citius", "go-net-http"),
    (
        Series(
            "keep-alive",
            "closed",
            "HTTP/1.1, keep-alive",
            Load(connections=64),
            ("hello", "parse-msgpack"),
            is_article=False,
        ),
        Series(
            "h2c",
            "h2",
            "HTTP/2, multiplexed",
            Load(connections=1, http="2", streams=64),
            ("hello", "parse-msgpack"),
            is_article=False,
        ),
        Series(
            "rpc",
            "rpc",
            "MessagePack-RPC",
            Load(connections=1, rpc=True, streams=64),
            ("hello", "parse-msgpack"),
            is_article=False,
        ),
    ),
    90.0,
    "go-net-http",
    window_s=0.8,
    compares_wires=True,
)

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        QUICK,
        REST,
        ASYNC,
        JAPRONTO,
        FALCON_GO,
        WORK_IN_HANDLER,
        MULTICORE,
        OPEN,
        PEERS,
        H2,
        REST_TLS,
        RPC,
    )
}
ALL = "all"
# Everything but the brief look at everything.
PARTS_OF_ALL = tuple(name for name in EXPERIMENTS if name != "quick")
