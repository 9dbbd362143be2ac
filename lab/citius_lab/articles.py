"""The source articles: what they published, on which machine, and what their protocol hides.

Published figures stand beside today's and are never an expectation of this machine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Published:
    """One figure of an article.

    Attributes:
        who: The contestant in the article's words.
        contestant: Who comes closest to it here; ``None`` if nobody does.
        case: The case it belongs to here.
        series: The series of the experiment it belongs to.
        error_share: Of all requests; ``None`` where the article does not tell.
    """

    who: str
    contestant: str | None
    case: str
    series: str
    requests_per_s: float
    error_share: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Article:
    """One source article.

    Attributes:
        tool: The article's own command.
        hides: What a reader of its table does not learn, one sentence each.
        other: Published figures that are no rates, in words.
    """

    id: str
    title: str
    machine: str
    tool: str
    published: tuple[Published, ...]
    hides: tuple[str, ...]
    other: tuple[str, ...] = ()

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


def _rest(who: str, contestant: str, *rates: float) -> tuple[Published, ...]:
    cases = ("hello", "parse-msgpack", "encode-json", "transfer-data", "million-loop")
    return tuple(
        Published(who, contestant, case, "wrk", rate)
        for case, rate in zip(cases, rates, strict=True)
    )


def _runs(
    who: str, contestant: str, case: str, *runs: tuple[float, float | None]
) -> tuple[Published, ...]:
    """Return the runs of article 001, one figure each; the article averages them."""
    return tuple(
        Published(who, contestant, case, "users", rate, share, f"run {number}")
        for number, (rate, share) in enumerate(runs, 1)
    )


REST = Article(
    "000",
    "Benchmarking Python vs PyPy vs Go vs Rust",
    "Intel i7-920 capped at 2.53 GHz (4 cores, 8 threads), applications open meanwhile",
    "wrk -c 256 -d 15s -t 3 http://localhost:8080/…",
    (
        *_rest("Rust (actix-web)", "rust-actix", 128747.61, 5485.43, 5637.20, 19551.83, 1509.84),
        *_rest("Go (fasthttp)", "go-fasthttp", 116672.12, 4257.06, 3144.31, 22738.92, 852.26),
        *_rest("PyPy (uwsgi)", "pypy-uwsgi-werkzeug", 26507.69, 1088.88, 864.48, 5502.14, 791.68),
        *_rest("Python (uwsgi)", "uwsgi-werkzeug", 21095.92, 1313.93, 788.76, 7041.16, 20.94),
    ),
    (
        "Python and PyPy were measured with 64 connections, Go and Rust with 256, "
        "because the former failed with 256: the table does not show it.",
        "Go and Rust decode into structs, Python into dicts; "
        "the JSON and MessagePack libraries differ as well.",
        "Generator and server share the cores, and Python runs 8 processes where Rust and Go run "
        "threads: requests per core are not shown.",
        "One run of 15 s each, with programs open: no interval, "
        'and "10 % margin" is a guess; differences such as Go and Rust at transfer-data are within it.',
        'The table "mean microseconds per request" is 1/throughput, no latency.',
        "Memory is resident size times processes, which counts shared pages eight times.",
        'The text says "Rust is 2x faster than Go, and Go is 4x faster than PyPy"; the geometric means '
        "of its own table are 1.31 and 3.1.",
    ),
    (
        "Memory while encoding: Rust 41 MB, Go 132 MB, PyPy 8 × 85 MB, Python 8 × 20 MB.",
        "PyPy needs a warm-up that the article mentions and does not measure.",
    ),
)

ASYNC = Article(
    "001",
    "Benchmarking Python and Rust Async Web Server Performance",
    "not named; JMeter 5.5 on the same machine",
    "jmeter -n: 6000 users, ramp-up 2 s, one request each",
    (
        *_runs(
            "Python (BlackSheep, uvicorn)",
            "blacksheep",
            "async",
            (365, 0.0182),
            (791, 0.0),
            (452, 0.085),
        ),
        *_runs(
            "Rust (axum, 1 worker thread)",
            "rust-axum",
            "async",
            (475, 0.0377),
            (628, 0.0),
            (625, 0.0),
        ),
        *_runs(
            "Python (BlackSheep, uvicorn)",
            "blacksheep",
            "fibonacci",
            (1321, 0.0115),
            (430, 0.0167),
            (1285, None),
        ),
        *_runs(
            "Rust (axum, 1 worker thread)",
            "rust-axum",
            "fibonacci",
            (829, 0.0),
            (1493, 0.0),
            (1817, 0.0),
        ),
        *_runs(
            "Rust (axum, 4 worker threads)",
            "rust-axum-4",
            "fibonacci",
            (1821, 0.0),
            (534, 0.0388),
            (1074, 0.0),
        ),
    ),
    (
        "6000 users over 2 s are 3000 requests/s whatever the server: "
        "one that keeps up shows the ramp, not its capacity.",
        "Runs of one contestant differ by more than a factor of two (365, 791, 452), "
        "contestants by 7 %: the conclusion does not follow.",
        "Up to 8.5 % of the requests failed; their share is averaged, "
        "and the failed ones are in the rate.",
        "The mean rate of Python's fibonacci is that of three runs, its mean error share that of two: "
        "the third run has none.",
        "The server was restarted for none of the runs.",
        "JMeter starts 6000 threads beside the server: what was measured is mostly JMeter.",
    ),
    (
        "Averages in the article: async 536 (3.44 % errors) and 576 (1.26 %); "
        "fibonacci 1 012 (1.41 %), 1 380 (0 %) and 1 143 (1.29 %).",
    ),
)

JAPRONTO = Article(
    "002",
    "A million requests per second with Python",
    "AWS c4.2xlarge, 8 vCPUs (Xeon E5-2666 v3 @ 2.90 GHz), shared tenancy, Linux 4.4",
    "wrk -t 1 -c 100 with a script that pipelines 24 requests",
    (Published("Japronto", "japronto", "hello", "pipelined", 1_214_440.0),),
    (
        "24 requests wait behind each other on every connection: it measures how few system calls "
        "a server makes for many tiny requests. No browser does it.",
        "wrk records one latency per batch of 24, and corrects it: its percentiles are none of "
        "single requests.",
        "One worker of everybody, also of those that would use all cores.",
        "Shared tenancy: neighbours are not seen.",
        "Answers were not checked; the article itself says that two servers drop "
        "pipelined requests silently.",
    ),
    ("Go's fasthttp is said to be 18 % slower than Japronto, net/http 12 % better than drawn.",),
)

FALCON_GO = Article(
    "003",
    "Go vs Python more request per second",
    "Intel i7-3520M @ 2.90 GHz, 8 GB",
    "ab -n10000 -c500 http://127.0.0.1:8080/",
    (
        Published("Falcon (server not named)", "gunicorn-falcon", "hello", "count", 4888.35, 0.0),
        Published("Go (go run)", "go-net-http", "hello", "count", 15711.36, 0.0, "0.636 s"),
        Published("Go, compiled", "go-net-http", "hello", "count", 20978.30, 0.0, "0.415 s"),
    ),
    (
        "The runs lasted 2.0, 0.6 and 0.4 s: opening 500 connections and waiting for the last of "
        "them is much of that.",
        "Falcon's slowest 2 % took 1 s and more, connecting up to 1004 ms: that is a SYN sent again "
        "after a second because the accept queue was full. A setting, not the framework.",
        "Every request opens a connection: the kernel's work is most of what is measured.",
        "ab is one thread that costs more per request than the server; "
        "the Go figure may well be ab's.",
        "Rate × mean latency is 284 requests in flight for Falcon and 110 for Go, of the 500 that ab "
        "was to keep there (Little's law): ab was busy with itself.",
        "One run of each.",
        "The compiled Go figure contradicts itself: 10 000 requests in 0.415 s are 24 096/s, "
        "20 978.30/s are 0.477 s.",
        "No server is named for Falcon; here it runs on gunicorn with gevent.",
    ),
    ("Falcon: p98 1029 ms, longest connect 1004 ms.",),
)

WORK_IN_HANDLER = Article(
    "004",
    "Python multi-core benchmark in uvloop context",
    "Core 2 Duo notebook, 2 cores",
    "wrk -t 1 -c 40 -d 10",
    (),
    (
        "The figure shows ratios at three path lengths, each from one run of 10 s, with the load "
        "generator on the same two cores.",
        "The benchmarks it answers set GOMAXPROCS=1. Without it Go uses all cores and one Python "
        "process does not: neither is requests per core. The experiment multicore shows both.",
        "The classification is plain Python against compiled Go: "
        "a compiled handler would be another contestant.",
    ),
    (
        "Go over Python: close at 1 character, about 2.8 × at 11, about 14 × at 101.",
        "Quoted run: 21 601.66 requests/s, latency 2.20 ms ± 2.16 ms.",
    ),
)

ARTICLES = {article.id: article for article in (REST, ASYNC, JAPRONTO, FALCON_GO, WORK_IN_HANDLER)}
