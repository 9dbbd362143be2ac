"""Runs every case of h2spec, an outside judge of RFC 9113 and RFC 7541, against `citius serve`.

h2spec.py H2SPEC [OPTION...]: the program, and options for it such as `http2/5.1` to run a section alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from judged import served

APP = """\
from citius import App

app = App()

@app.get("/")
def hello():
    return "Hello"

@app.post("/")
def echo(request):
    return request.body()
"""

# Each case may wait so long for what must not come; more only makes failures slower.
PATIENCE_S = "2"

# What begins with neither preface is HTTP/1's to answer, in words that are no frames; all else is the same.
BUT_PREFACES = ("generic", "hpack", "http2/4", "http2/5", "http2/6", "http2/7", "http2/8")

WAYS = {
    "h2c alone": (["--http", "2"], []),
    "h2c beside HTTP/1": ([], [*BUT_PREFACES]),
    "TLS": (["--ssl-dev"], ["--tls", "--insecure"]),
}
"""Options of the server, and of h2spec: sections to ask, all without any."""


def judge(h2spec: str, way: str, asked: list[str]) -> int:
    """Runs the cases; exit code 0: all of them pass."""
    options, more = WAYS[way]
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "main.py").write_text(APP)
        with served("main.py", directory, *options) as port:
            done = subprocess.run(
                [os.path.abspath(h2spec), "--strict", "-h", "127.0.0.1", "-p", port, "-o", PATIENCE_S,
                 *more, *asked],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
    summary = re.search(r"\d+ tests, .*", done.stdout)
    print(f"{way}: {summary[0] if summary else done.stdout}")
    if done.returncode:
        print(done.stdout.partition("Failures:")[2])
    return done.returncode


def main() -> int:
    """Exit code 0: all cases pass."""
    h2spec, *asked = sys.argv[1:]
    return max(judge(h2spec, way, asked) for way in WAYS)


if __name__ == "__main__":
    sys.exit(main())
