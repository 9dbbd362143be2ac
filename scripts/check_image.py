"""Builds the image of deploy/Dockerfile from a wheel, and runs it as deploy/compose.yaml says.

    check_image.py WHEEL

The service is the tutorial's. The engine is docker, or else podman with runc (Debian: podman, buildah,
runc). Where no base image can be pulled, one of Debian's Python takes its place under the same name
(debootstrap).

What is checked: the image builds; the container starts with a read-only root, no capabilities, no new
privileges and a user id without an account; it writes to its volume and to /tmp alone; the image's health
check passes; `stop` ends it with code 0 before the engine kills it; its data is there when it starts again.

A line "without: ..." says why nothing was checked.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Generator

ROOT = Path(__file__).resolve().parents[1]
# Debian's suites and the Pythons in them.
SUITES = {"3.11": "bookworm", "3.13": "trixie"}
IMAGE = "citius-check-image"
# Where a registry is asked for by a name without one.
REGISTRY = "docker.io/library"


def main() -> None:
    """Build, run, check."""
    wheel = Path(sys.argv[1]).resolve()
    found = re.search(r"-cp3(\d+)-cp3\d+-", wheel.name)
    version = f"3.{found[1]}" if found else ""
    engine = Engine()
    if not engine.is_there():
        print("without: the container image (no docker, and no podman with runc)")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not engine.has_base(version, folder):
            print(f"without: the container image (no base image of Python {version})")
            return
        application(folder, wheel, version)
        with served(folder / "wheels") as index:
            (folder / "notes/requirements.txt").write_text(
                f"--no-index\n--find-links {index}\ncitius\n"
            )
            engine.build(folder / "notes", version)
        try:
            check(engine)
        finally:
            engine.run("rmi", "--force", IMAGE, is_checked=False)
    print(f"check-image: {wheel.name} serves in a container of {engine.name}")


class Engine:
    """Docker, or podman as root on a machine that it was not made for."""

    def __init__(self) -> None:
        self.name = "docker" if succeeds("docker", "info") else "podman"
        self._env = dict(os.environ)
        self._first: list[str] = []
        # What a machine without the right to raise limits, overlays and unified control groups has to say.
        self.run_options: list[str] = []
        if self.name == "podman":
            self._env["STORAGE_DRIVER"] = "vfs"
            self._first = ["--runtime", "runc"]
            self.run_options = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1000:1000"]

    def is_there(self) -> bool:
        """Tell whether everything that is called is installed."""
        needed = ["docker"] if self.name == "docker" else ["podman", "buildah", "runc"]
        return all(map(shutil.which, needed))

    def run(self, *words: str, is_checked: bool = True) -> str:
        """Call the engine; return what it says."""
        return self._call([self.name, *self._first, *words], is_checked)

    def _call(self, command: list[str], is_checked: bool) -> str:
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=False)
        if is_checked and done.returncode:
            sys.exit(f"check-image: {' '.join(command)}\n{done.stdout}{done.stderr}")
        return done.stdout.strip()

    def has_base(self, version: str, folder: Path) -> bool:
        """Have the image that the Dockerfile begins from."""
        name = f"{REGISTRY}/python:{version}-slim"
        if self.run("images", "--quiet", name) or self.name == "docker":
            return True
        self.run("pull", "--quiet", name, is_checked=False)
        if self.run("images", "--quiet", name):
            return True
        if version not in SUITES or not shutil.which("debootstrap"):
            return False
        self._make_base(name, SUITES[version], folder / "base")
        return True

    def _make_base(self, name: str, suite: str, root: Path) -> None:
        what = ["--format", "$(REPO_URI)", "Created-By: Packages", "Label: Debian"]
        mirror = self._call(["apt-get", "indextargets", *what], True).splitlines()[0]
        packages = "python3,python3-venv,ca-certificates"
        self._call(
            ["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(root), mirror],
            True,
        )
        made = (
            "python3 -m venv /usr/local/pip && ln -s /usr/local/pip/bin/pip /usr/local/bin/pip"
            " && ln -s /usr/bin/python3 /usr/local/bin/python"
        )
        self._call(["chroot", str(root), "sh", "-c", made], True)
        container = self._call(["buildah", "from", "scratch"], True)
        self._call(["buildah", "add", "--quiet", container, str(root), "/"], True)
        self._call(
            ["buildah", "config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", container], True
        )
        self._call(["buildah", "commit", "--quiet", container, name], True)
        self._call(["buildah", "rm", container], True)

    def build(self, folder: Path, version: str) -> None:
        """Build the image of an application."""
        words = ["--network", "host", "--build-arg", f"PYTHON={version}", "--tag", IMAGE]
        file = ["--file", str(ROOT / "deploy/Dockerfile"), str(folder)]
        if self.name == "docker":
            self.run("build", *words, *file)
        else:
            how = ["--isolation", "chroot", "--format", "docker", "--pull-never"]
            self._call(["buildah", "bud", *how, *words, *file], True)


def succeeds(*command: str) -> bool:
    """Tell whether a command is there and works: docker may be installed without its daemon."""
    try:
        return not subprocess.run(command, capture_output=True, check=False).returncode
    except FileNotFoundError:
        return False


def application(folder: Path, wheel: Path, version: str) -> None:
    """Lay out the tutorial's service, and the wheels that its image takes."""
    notes, wheels = folder / "notes", folder / "wheels"
    notes.mkdir()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/tutorial.md").read_text(), re.DOTALL)
    (service,) = (block for block in blocks if "import sqlite3" in block)
    (notes / "notes.py").write_text(service + PROBE)
    shutil.copy(ROOT / "deploy/Dockerfile.dockerignore", notes / ".dockerignore")
    pip = [sys.executable, "-m", "pip", "--quiet", "download", "--only-binary=:all:"]
    libraries = ("manylinux2014", "manylinux_2_17", "manylinux_2_28")
    platforms = [f"--platform={library}_{os.uname().machine}" for library in libraries]
    subprocess.run(
        [*pip, *platforms, f"--python-version={version}", "-d", wheels, wheel], check=True
    )


# What the container may do, told from within.
PROBE = """

@app.get("/probe")
def probe(write: str = "") -> dict[str, object]:
    if write:
        try:
            open(write, "w").close()
        except OSError as error:
            return {"error": error.strerror}
        return {"error": None}
    status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines())
    capabilities = int(status["CapEff"], 16) | int(status["CapBnd"], 16)
    found = {"uid": os.getuid(), "parent": os.getppid(), "no_new_privs": status["NoNewPrivs"]}
    return {**found, "capabilities": capabilities}
"""


def check(engine: Engine) -> None:
    """Run the image twice and look at it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    volume = engine.run("volume", "create")
    try:
        with container(engine, volume, port) as name:
            found = get(port, "/probe")
            assert found == {"uid": 65532, "parent": 1, "capabilities": 0, "no_new_privs": "1"}, (
                found
            )
            for path in ("/srv/notes.db", "/etc/passwd", "/usr/local/bin/citius", "/new"):
                assert get(port, f"/probe?write={path}")["error"] == "Read-only file system", path
            for path in ("/tmp/a", "/data/a"):
                assert get(port, f"/probe?write={path}")["error"] is None, path
            created = get(port, "/notes", b'{"text": "milk"}')
            check_health(engine, name, port)
            began = time.monotonic()
            engine.run("stop", "-t", "30", name)
            took = time.monotonic() - began
            code = engine.run("inspect", "--format", "{{.State.ExitCode}}", name)
            assert code == "0", f"stopped with {code}"
            assert took < 20, f"stopped after {took:.1f} s"
        with container(engine, volume, port):
            assert get(port, f"/notes/{created['id']}") == created, "the volume has lost the note"
    finally:
        engine.run("volume", "rm", "--force", volume, is_checked=False)


@contextlib.contextmanager
def container(engine: Engine, volume: str, port: int) -> Generator[str]:
    """Run the image with the options of the compose file, on another port, until the block is left."""
    service: dict[str, Any] = yaml.safe_load((ROOT / "deploy/compose.yaml").read_text())[
        "services"
    ]["notes"]
    options = ["--read-only"] if service["read_only"] else []
    options += [f"--cap-drop={name}" for name in service["cap_drop"]]
    options += [f"--security-opt={name.partition(':')[0]}" for name in service["security_opt"]]
    options += [
        f"--user={service['user']}",
        f"--memory={service['mem_limit']}",
        f"--pids-limit={service['pids_limit']}",
    ]
    options += [f"--env={name}={value}" for name, value in service["environment"].items()]
    options += [f"--volume={volume}:{path.partition(':')[2]}" for path in service["volumes"]]
    options += [f"--tmpfs={place}" for place in service["tmpfs"]]
    # With a network of its own the port would have to be forwarded, which is nothing of ours.
    command = [word.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for word in service["command"]]
    name = engine.run(
        "run", "--detach", "--network=host", *engine.run_options, *options, IMAGE, *command
    )
    try:
        wait_for(lambda: get(port, "/health/ready"), lambda: engine.run("logs", name))
        yield name
    finally:
        engine.run("rm", "--force", name, is_checked=False)


def check_health(engine: Engine, name: str, port: int) -> None:
    """Run the image's health check, at the port of this run."""
    config = engine.run("inspect", "--format", "{{json .Config.Healthcheck}}", name)
    kind, *command = json.loads(config)["Test"]
    assert kind == "CMD", config
    engine.run("exec", name, *(word.replace("8000", str(port)) for word in command))


def wait_for(attempt: Any, explain: Any) -> None:
    """Repeat until it raises no error of the network."""
    until = time.monotonic() + 60
    while True:
        try:
            attempt()
        except OSError:
            if time.monotonic() > until:
                sys.exit(f"check-image: the container does not serve: {explain()}")
            time.sleep(0.05)
        else:
            return


def get(port: int, path: str, body: bytes | None = None) -> Any:
    """Request it, and return what the JSON means."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=20) as response:
        text = response.read()
    return json.loads(text) if text[:1] == b"{" else text


@contextlib.contextmanager
def served(folder: Path) -> Generator[str]:
    """Serve a folder's files to pip in the stage that builds."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    main()
