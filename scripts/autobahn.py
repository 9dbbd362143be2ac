"""Runs the cases of Autobahn's suite, an outside judge of RFC 6455 and RFC 7692, against `citius serve`.

autobahn.py SUITE [fast | CASE...]: the suite's environment (as `scripts/setup-autobahn` makes it), and what
to run: every case without, the groups that take seconds with `fast`, or the suite's own patterns such as
`12.*`. Each case is run with a native application and with an ASGI one. A case passes when the suite calls
both its behaviour and its close OK: what it calls NON-STRICT, UNCLEAN or UNIMPLEMENTED fails. It says
INFORMATIONAL of any server in the few cases named below.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from judged import served

APPS = {
    "native": """\
from citius import App

app = App()

@app.websocket("/")
async def echo(ws):
    async for message in ws:
        await ws.send(message)
""",
    "asgi": """\
async def app(scope, receive, send):
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        text, data = message.get("text"), message.get("bytes")
        await send({"type": "websocket.send", **({"bytes": data} if text is None else {"text": text})})
""",
}

FAST = ["1.*", "2.*", "3.*", "4.*", "5.*", "6.*", "7.*", "10.*"]
# One run of the suite each, for it asks for one case after the other.
SHARES = [
    FAST,
    ["9.*"],
    *([f"12.{n}.*"] for n in range(1, 6)),
    *([f"13.{n}.*"] for n in range(1, 8)),
]
N_CASES = 517

# The suite ends each case by itself; a share that takes longer will not end.
PATIENCE_S = 1800

# A close frame right behind a large message, and close codes without a meaning: both outcomes are accepted.
INFORMATIONAL = {"7.1.6", "7.13.1", "7.13.2"}


def serve(app: str, stack: ExitStack) -> str:
    """Serve an application until the stack is left; its port."""
    directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    (directory / "main.py").write_text(APPS[app])
    return stack.enter_context(served("main.py", directory, "--lifespan", "off"))


def run(suite: Path, app: str, port: str, cases: list[str]) -> dict[str, dict[str, str]]:
    """The suite's verdicts, by case."""
    with tempfile.TemporaryDirectory() as directory:
        spec = Path(directory) / "spec.json"
        spec.write_text(json.dumps({
            "outdir": f"{directory}/report", "cases": cases, "exclude-cases": [], "exclude-agent-cases": {},
            "servers": [{"agent": app, "url": f"ws://127.0.0.1:{port}/"}],
        }))  # fmt: skip
        done = subprocess.run(
            [suite / "python", suite / "bin/wstest", "--mode", "fuzzingclient", "--spec", spec],
            env={**os.environ, "PYTHONUSERBASE": str(suite), "PYTHONWARNINGS": "ignore"},
            cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE_S,
        )  # fmt: skip
        index = Path(directory) / "report/index.json"
        if done.returncode or not index.exists():
            raise SystemExit(
                f"autobahn: the suite ended with {done.returncode}:\n{done.stdout[-2000:]}"
            )
        return json.loads(index.read_text())[app]


def faults(verdicts: dict[str, dict[str, str]]) -> list[str]:
    """What is not strictly right, a line each."""
    found: list[str] = []
    for case, verdict in verdicts.items():
        allowed = {"OK", "INFORMATIONAL"} if case in INFORMATIONAL else {"OK"}
        if not {verdict["behavior"], verdict["behaviorClose"]} <= allowed:
            found.append(f"{case}: {verdict['behavior']}, close {verdict['behaviorClose']}")
    return found


def judge(suite: Path, app: str, shares: list[list[str]], expected: int | None) -> int:
    """Runs the cases against one application; how many are not as they should be."""
    begun = time.monotonic()
    verdicts: dict[str, dict[str, str]] = {}
    with ExitStack() as stack, ThreadPoolExecutor(os.cpu_count()) as pool:
        port = serve(app, stack)
        for some in pool.map(lambda cases: run(suite, app, port, cases), shares):
            verdicts |= some
    found = faults(verdicts)
    if len(verdicts) != (expected or len(verdicts) or 1):
        found.append(f"there should be {expected or 'any'} cases")
    said = [f"{app}: {len(verdicts)} cases, {len(found)} faults, {time.monotonic() - begun:.0f} s"]
    said += [f"  {line}" for line in found]
    print("".join(f"{line}\n" for line in said), end="", flush=True)
    return len(found)


def main() -> int:
    """Exit code 0: all cases pass."""
    suite, *asked = sys.argv[1:]
    shares = [FAST] if asked == ["fast"] else [asked] if asked else SHARES
    expected = None if asked else N_CASES
    # At once where nothing computes for long: most of a case is the suite's wait for a close.
    with ThreadPoolExecutor(len(APPS) if asked == ["fast"] else 1) as pool:
        judged = pool.map(lambda app: judge(Path(suite).resolve(), app, shares, expected), APPS)
        return min(sum(judged), 1)


if __name__ == "__main__":
    sys.exit(main())
