"""What each level of compression is worth in the profile json-comp: `levels.py DATASET [SECONDS]`.

DATASET is HttpArena's data/dataset.json. The profile's requests are asked of the entry with one worker,
for so many seconds at each level, in rounds; printed are the bytes of a response, the least CPU time of
a request, and the score in HttpArena's rule, requests per second times (smallest response / own
response)², as a share of the best. The CPU time stands for the rate: a saturated server's rate is its
inverse, and what other programs on the machine add to it is least in the round that is shown.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from citius_lab.measure.drive import load_command
from citius_lab.processes import launch

ENTRY = Path(__file__).parent / "citius" / "app.py"
TARGETS = ("/json/25?m=4", "/json/40?m=8", "/json/50?m=6")
CODINGS = (
    "br=0",
    "br=1",
    "br=2",
    "br=3",
    "br=4",
    "br=5",
    "br=6",
    "gzip=1",
    "gzip=4",
    "gzip=6",
    "gzip=9",
)


def main(dataset: Path, seconds: float) -> None:
    """Measure every coding and print the table."""
    found: dict[str, tuple[float, float]] = {}
    for _ in range(ROUNDS):
        for coding in CODINGS:
            size, us = measured(coding, dataset, seconds)
            found[coding] = size, min(us, found.get(coding, (size, us))[1])
    least = min(size for size, _ in found.values())
    scores = {coding: (least / size) ** 2 / us for coding, (size, us) in found.items()}
    print("| coding | bytes | CPU µs | score |")
    print("|---|---:|---:|---:|")
    for coding, (size, us) in found.items():
        print(
            f"| `{coding}` | {size:.0f} | {us:.0f} | {scores[coding] / max(scores.values()):.2f} |"
        )


def measured(coding: str, dataset: Path, seconds: float) -> tuple[float, float]:
    """Return the mean bytes of a response, and the server's CPU time per request in µs."""
    port = launch.free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        variables = {
            "DATASET_PATH": str(dataset),
            "STATIC_DIR": name,
            "CACHE_PATH": f"{name}/cache",
        }
        command = [sys.executable, "-m", "citius", "serve", str(ENTRY), "--port", str(port)]
        options = ["--no-access-log", "--log-level", "warning", "--compress", coding]
        process = launch.Guarded([*command, *options], env=os.environ | variables, stdout=2)
        try:
            if not launch.accepts(port, START_S):
                sys.exit(f"the entry does not listen with --compress {coding}")
            name = coding.partition("=")[0]
            size = sum(length(port, target, name) for target in TARGETS) / len(TARGETS)
            asked(port, name, folder, 0.5)
            before = sum(launch.cpu_clocks_s(launch.tree(process.pid)).values())
            count = asked(port, name, folder, seconds)
            used_s = sum(launch.cpu_clocks_s(launch.tree(process.pid)).values()) - before
            return size, used_s * 1e6 / count
        finally:
            process.stop()


def length(port: int, target: str, coding: str) -> int:
    """Return the bytes of a response's content as they are sent."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    connection.request("GET", target, headers={"Accept-Encoding": coding})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    if response.getheader("Content-Encoding") != coding:
        sys.exit(f"{target} is not compressed by {coding}")
    return len(body)


def asked(port: int, coding: str, folder: Path, seconds: float) -> int:
    """Ask the profile's requests in a closed loop; return how many were answered."""
    mix = [{"method": "GET", "path": target, "weight": 1} for target in TARGETS]
    (folder / "mix").write_text(json.dumps(mix))
    words = [
        *load_command(),
        "--connections",
        "64",
        "--duration",
        f"{seconds}s",
        "--mix",
        str(folder / "mix"),
    ]
    words += ["--header", f"Accept-Encoding: {coding}", "--json", str(folder / "load")]
    subprocess.run([*words, f"http://127.0.0.1:{port}/"], check=True, stdout=subprocess.DEVNULL)
    return int(json.loads((folder / "load").read_text())["completed"])


START_S = 20.0
ROUNDS = 5

if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(Path(sys.argv[1]).resolve(), float(sys.argv[2]) if len(sys.argv) == 3 else 3.0)
