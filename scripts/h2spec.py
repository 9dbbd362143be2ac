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


def serve(directory: str) -> tuple[subprocess.Popen[str], str]:
    """A server in clear text, and its port."""
    (Path(directory) / "main.py").write_text(APP)
    process = subprocess.Popen(
        [sys.executable, "-m", "citius", "serve", "main.py", "--port", "0", "--no-access-log"],
        cwd=directory, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"serves on http://\S+:(\d+)", line):
            return process, found[1]
    raise SystemExit(f"h2spec: the server ended with {process.wait()}")


def main() -> int:
    """Exit code 0: all cases pass."""
    h2spec, *options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        process, port = serve(directory)
        try:
            done = subprocess.run(
                [os.path.abspath(h2spec), "--strict", "-h", "127.0.0.1", "-p", port, "-o", PATIENCE_S,
                 *options],
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
        finally:
            process.terminate()
            process.wait(10)
    failures = done.stdout.partition("Failures:")[2]
    summary = re.search(r"\d+ tests, .*", done.stdout)
    print(f"h2c: {summary[0] if summary else done.stdout}")
    if failures:
        print(failures)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
