"""The machine code of `million-loop` by each compiler: `show_million_loop.py [PACKAGES]`.

Prints the loop of the contestants' own functions as rustc, Go and numba compile them, and as gcc compiles
what Cython makes of it. PACKAGES is where numba is installed (`lab/.build/citius-numba/packages` after
`citius lab build citius-numba`). It answers why one is slower: each step needs the total of the step before,
so that what counts is how many operations lie between two totals.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

CONTESTANTS = Path(__file__).parents[1] / "lab" / "contestants"
C = """
long million_loop(long total) {
    for (long i = 0; i < 1000000; i++) { total += i * 3; if (total & 64) total -= i; }
    return total;
}
"""


def source(path: str, pattern: str) -> str:
    """Return a function of a contestant."""
    found = re.search(pattern, (CONTESTANTS / path).read_text(), re.MULTILINE | re.DOTALL)
    if found is None:
        sys.exit(f"show_million_loop: no such function in {path}")
    return found[0]


def compiled(text: str, suffix: str, *command: str) -> str:
    """Return what a compiler says of a source file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"loop{suffix}")
        path.write_text(text)
        done = subprocess.run(
            [*command, path], cwd=folder, capture_output=True, text=True, check=True
        )
        return done.stdout


def by_numba(text: str) -> str:
    """Return numba's machine code of a Python function."""
    numba: Any = import_module("numba")
    # Its decorator names an application that is not here.
    exec(text, names := {})
    function = numba.njit(names["million_loop"])
    function(1)
    (code,) = function.inspect_asm().values()
    return str(code)


def loop(code: str) -> str:
    """Return the first loop: from a label to the jump back to it."""
    lines = [line for line in code.splitlines() if not re.match(r"\s+\.", line)]
    for number, line in enumerate(lines):
        if (jump := re.search(r"\tj\w+\s+(\.L\w+)$", line)) and f"{jump[1]}:" in lines[:number]:
            return "\n".join(lines[lines.index(f"{jump[1]}:") + 1 : number + 1])
    return code


def main() -> None:
    """Print each of them."""
    sys.path[:0] = sys.argv[1:]
    rust = source("shared/rust/src/lib.rs", r"^pub fn million_loop.*?^}")
    go = source("shared/go/work.go", r"^func MillionLoop.*?^}")
    numba = source("citius-numba/app.py", r"^def million_loop.*?return total")
    rustc = ("rustc", "--crate-type", "lib", "--emit", "asm", "-O", "-o", "-")
    go_code = compiled(
        f"package work\n{go}\n",
        ".go",
        "go",
        "tool",
        "compile",
        "-S",
        "-o",
        "/dev/null",
        "-p",
        "work",
    )
    found = {
        "rustc": loop(compiled(f"#[unsafe(no_mangle)]\n{rust}\n", ".rs", *rustc)),
        "Go": "\n".join(re.findall(r"^\t0x\w+ \d+ \([^)]*\)(\t[A-Z]+.*)$", go_code, re.MULTILINE)),
        "gcc": loop(compiled(C, ".c", "gcc", "-O2", "-S", "-o", "-")),
        "numba": loop(by_numba(numba)),
    }
    for name, code in found.items():
        print(f"{name}:\n{code}\n")


if __name__ == "__main__":
    main()
