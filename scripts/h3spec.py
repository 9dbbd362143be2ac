"""Runs every case of h3spec, an outside judge of RFC 9000, 9001, 9114 and 9204, against `citius serve`.

h3spec.py H3SPEC [OPTION...]: the program, and options for it such as `--match TEXT` to run some cases alone.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from judged import served

APP = """\
from citius import App

app = App()

@app.get("/")
def hello():
    return "Hello"
"""

CASES = 45


def main() -> int:
    """Exit code 0: all cases pass."""
    h3spec, *asked = sys.argv[1:]
    # It waits a tenth of a second for a response, in which neither side may wait for a processor.
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "main.py").write_text(APP)
        with served("main.py", directory, "--ssl-dev", "--http", "1,2,3") as port:
            done = subprocess.run(
                [os.path.abspath(h3spec), "127.0.0.1", port, *asked],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
    found = re.search(r"(\d+) examples?, (\d+) failures?", done.stdout)
    is_whole = bool(asked) or (found is not None and int(found[1]) == CASES)
    print(found[0] if found else done.stdout)
    if done.returncode or not is_whole:
        print(done.stdout)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
