"""The end of a script whose client has a thread of its own, which reads when something comes."""

from __future__ import annotations

import subprocess
import sys

from http_peer import OK, Peer, Talk

SCRIPT = """
import atexit, sys

def late():  # registered before the client is imported, so that it is called behind the client's own
    import threading, time
    thread = next(one for one in threading.enumerate() if one.name == "citius.client")
    until = time.monotonic() + 10
    while (top := sys._current_frames()[thread.ident].f_code.co_name) != "_rest" and time.monotonic() < until:
        time.sleep(0.001)
    print(top, client.sync.get(url).text)

atexit.register(late)
from citius.http import Client

url = sys.argv[1]
client = Client(trust_env=False)
for _ in range(3):
    client.sync.get(url)
"""


def closing(talk: Talk) -> None:
    """Answers, and closes the connection, which the client's thread hears of while the script ends."""
    if talk.request() is not None:
        talk.say(OK)


def ended(script: str, url: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script, url], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_thread_is_in_no_code_of_the_extension_when_the_interpreter_ends() -> None:
    """Python unwinds its stack there, which ends the process by SIGABRT if it is; calls are answered."""
    with Peer(closing) as peer:
        done = ended(SCRIPT, f"http://127.0.0.1:{peer.port}/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "_rest ok\n", "")


def test_a_connection_that_ends_with_the_script() -> None:
    with Peer(closing) as peer:
        script = SCRIPT.replace("atexit.register(late)", "")
        codes = [ended(script, f"http://127.0.0.1:{peer.port}/").returncode for _ in range(8)]
    assert codes == [0] * 8
