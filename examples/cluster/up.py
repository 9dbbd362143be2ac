"""Two nodes of the chat and a Redis between them: `python examples/cluster/up.py`; CTRL+C ends it.

Needs `redis-server`. Ports are 8001 and 8002, or those that are given.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    ports = sys.argv[1:] or ["8001", "8002"]
    if shutil.which("redis-server") is None:
        raise SystemExit("redis-server is not installed: apt-get install redis-server")
    with tempfile.TemporaryDirectory() as directory:
        socket = Path(directory, "redis.sock")
        redis = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--dir", directory]
        programs = [subprocess.Popen(redis, stdout=subprocess.DEVNULL)]
        for ending in (signal.SIGINT, signal.SIGTERM):
            signal.signal(ending, signal.default_int_handler)
        try:
            while not socket.exists():
                if programs[0].poll() is not None:
                    raise SystemExit("redis-server did not start: run it alone to see why")
                time.sleep(0.02)
            for number, port in enumerate(ports, 1):
                serve = [
                    sys.executable,
                    "-m",
                    "citius",
                    "serve",
                    str(HERE / "chat.py"),
                    "--port",
                    port,
                ]
                env = {**os.environ, "CLUSTER": f"unix://{socket}", "NODE": str(number)}
                programs.append(subprocess.Popen(serve, env=env))
            while all(program.poll() is None for program in programs):
                time.sleep(0.1)
            raise SystemExit("a node or Redis has ended; a node has said why")
        except KeyboardInterrupt:
            pass  # the nodes have got the signal, too
        finally:
            for program in reversed(programs):
                program.terminate()
                program.wait()


if __name__ == "__main__":
    main()
