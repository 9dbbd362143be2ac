"""Installs the distributions of dist/ into empty environments and uses them from an empty folder.

    check_dist.py [--quick] [--sources] [DIRECTORY]
    check_dist.py --shoot-out [DIRECTORY]

For each CPython of `scripts/pythons` that dist/ has a wheel for: install; the README's first minute;
serve a native, an ASGI and a WSGI application, HTTPS; reload while requests go on; stop. It prints the
time from `pip install` to the first response, that of `import citius`, and the memory of a worker. Once:
the lab from its wheel, an upgrade by USR2 to the next version's wheel while requests go on, sizes,
`auditwheel`, `twine check --strict`, and the line about a missing toolchain, the manifests of deploy/.
Wheels for aarch64 serve under qemu-user (scripts/python-aarch64), those for musl under a Python that is
built for it (scripts/python-musl). `--quick` takes one Python. `--sources` builds both source
distributions with cargo alone, which takes minutes.

`--shoot-out` does another thing, which takes minutes for each of the same Pythons: it installs
`citius[lab]` from dist/ and runs `citius lab run quick --budget 60` with all contestants of that
experiment. It says who took part, and who was left out and why; a contestant that failed verification is
a broken promise. Its figures mean nothing: other work may be under way.

PYTHONS="3.13 3.14t" considers those alone, as for scripts/pythons.

A wheel for which this machine has no interpreter is not used, and a line "without: ..." names it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elftools.elf.elffile import ELFFile

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

ROOT = Path(__file__).resolve().parents[1]
DIST = Path(next((word for word in sys.argv[1:] if word[0] != "-"), ROOT / "dist")).resolve()
TOOLS = ROOT / ".venv-dist" / "bin"
APPLICATIONS = {
    "hello.py": """
from citius import App

app = App()

@app.get("/")
def hello():
    return {"hello": "world"}
""",
    "on_asgi.py": """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b'{"hello": "world"}'})
""",
    "on_wsgi.py": """
def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "application/json")])
    return [b'{"hello": "world"}']
""",
}
# Its response names the version that is installed.
VERSIONED = """
from importlib.metadata import version
from citius import App

app = App()
installed = version("citius")

@app.get("/")
def hello():
    return {"version": installed}
"""
# How each is served.
SERVED = (("hello.py",), ("on_asgi:app",), ("on_wsgi:app",))
# Debian's suites whose Pythons serve under qemu; what pip calls the libraries of wheels that they can load.
SUITES = ("bookworm", "trixie", "sid")
COMPATIBLE = {
    "manylinux": ("manylinux2014", "manylinux_2_17", "manylinux_2_28"),
    "musllinux": ("musllinux_1_1", "musllinux_1_2"),
}
# What the project promises of its distributions.
WHEEL_BYTES_MAX = 6_500_000
IMPORT_MS_MAX = 60
WORKER_MB_MAX = 25
FIRST_RESPONSE_S_MAX = 20
# Of the lab's shoot-out, building excluded; variables that would change what it runs.
SHOOT_OUT_S = 60
SETTINGS = ("CITIUS_", "PYTHONPATH", "PYTHONHOME")


@dataclass(frozen=True)
class Foreign:
    """A Python that is not this machine's.

    Attributes:
        library: ``manylinux`` or ``musllinux``.
        machine: Its processor.
        version: Such as 3.13.
        emulator: What runs it, if this processor does not.
        interpreter: Its path.
        options: Of the server.
    """

    library: str
    machine: str
    version: str
    emulator: tuple[str, ...]
    interpreter: str
    options: tuple[str, ...] = ()


def main() -> None:
    """Check; the exit code is 1 when a promise is not kept."""
    complaints, checked = shoot_outs() if "--shoot-out" in sys.argv else check_everything()
    if not checked:
        complaints.append("no wheel fits a Python of this machine")
    for complaint in complaints:
        print("check-dist: FAILED:", complaint)
    if complaints:
        sys.exit(1)
    print(f"check-dist: wheels serve under {checked} Pythons")


def check_everything() -> tuple[list[str], int]:
    """Return the promises that are not kept, and under how many Pythons wheels were used."""
    complaints = [*check_files(), *check_manifests(), *check_sources()]
    used: set[Path] = set()
    for version, python, wheel in own_pythons():
        complaints += check_python(version, python, wheel, is_first=not used)
        used.add(wheel)
        if "--quick" in sys.argv:
            break
    checked = len(used)
    if "--quick" not in sys.argv:
        for foreign in foreign_pythons():
            complaints += check_foreign(foreign)
            if wheel := wheel_for(foreign.version, foreign.machine, foreign.library):
                used.add(wheel)
        tell_untested(used)
    if "--sources" in sys.argv:
        build_sources()
    return complaints, checked


def own_pythons() -> Iterator[tuple[str, str, Path]]:
    """Yield version and path of each Python of this machine, with the wheel for it."""
    for line in run(str(ROOT / "scripts/pythons")).splitlines():
        version, python = line.split()
        if wheel := wheel_for(version, os.uname().machine):
            yield version, python, wheel
        else:
            print(f"without: Python {version} (no wheel for it in {DIST.name}/)")


def wheel_for(version: str, machine: str, library: str = "manylinux") -> Path | None:
    """Return the wheel of dist/ for a CPython such as 3.13 or 3.14t."""
    tag = f"-cp{version.replace('.', '').rstrip('t')}-cp{version.replace('.', '')}-{library}"
    found = [path for path in DIST.glob(f"citius-*{machine}.whl") if tag in path.name]
    return found[0] if found else None


def tell_untested(used: set[Path]) -> None:
    """Say which wheels nothing here can load."""
    for wheel in sorted(set(DIST.glob("citius-*.whl")) - used):
        print(f"without: {wheel.name} in use (no such Python here)")


def check_files() -> list[str]:
    """Sizes, the metadata that an index checks, and the libraries that wheels need."""
    complaints: list[str] = []
    files = sorted([*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")])
    print(run(str(TOOLS / "twine"), "check", "--strict", *map(str, files)))
    for wheel in DIST.glob("*.whl"):
        print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.2f} MB")
        if wheel.name.startswith("citius-") and wheel.stat().st_size > WHEEL_BYTES_MAX:
            complaints.append(f"{wheel.name} is larger than {WHEEL_BYTES_MAX / 1e6:.0f} MB")
        if "musllinux" in wheel.name:
            # zig calls musl libc.so, which its loader takes for itself and auditwheel does not.
            if others := needed(wheel) - {"libc.so"}:
                complaints.append(f"{wheel.name} needs {', '.join(sorted(others))}")
            continue
        # It breaks lines where the name of the wheel lets it.
        shown = " ".join(run(str(TOOLS / "auditwheel"), "show", str(wheel)).split())
        claimed = re.search(r"manylinux_2_(\d+)", wheel.name)
        found = re.search(r'the following platform tag: "manylinux_2_(\d+)_', shown)
        if claimed is None or found is None or int(found[1]) > int(claimed[1]):
            complaints.append(f"{wheel.name} is not what its name says: {shown}")
    return complaints


def needed(wheel: Path) -> set[str]:
    """Return the libraries that the machine code in a wheel is linked to."""
    found: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            if not data.startswith(b"\x7fELF"):
                continue
            dynamic = ELFFile(io.BytesIO(data)).get_section_by_name(".dynamic")
            if dynamic is not None:
                tags = dynamic.iter_tags("DT_NEEDED")
                found |= {tag.needed for tag in tags}
    return found


def check_manifests() -> list[str]:
    """The files of deploy/ and the workflows, by their schemas."""
    schemas = {
        "vendor.compose-spec": [ROOT / "deploy/compose.yaml"],
        "vendor.github-workflows": sorted((ROOT / ".github/workflows").glob("*.yml")),
    }
    for schema, files in schemas.items():
        run(str(TOOLS / "check-jsonschema"), f"--builtin-schema={schema}", *map(str, files))
    manifests = ROOT / "deploy/kubernetes.yaml"
    print(run(str(TOOLS / "kubernetes-validate"), "--strict", str(manifests)))
    return []


def check_sources() -> list[str]:
    """Without a toolchain, the source distribution says in one line what is missing."""
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder), sys.executable)
        (sdist,) = DIST.glob("citius-*.tar.gz")
        done = subprocess.run(
            [python, "-m", "pip", "wheel", "--no-deps", "-w", folder, str(sdist)],
            env={**os.environ, "PATH": f"{folder}/venv/bin"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    said = [line for line in (done.stdout + done.stderr).splitlines() if "needs cargo" in line]
    return [] if done.returncode and len(said) == 1 else [f"sdist without cargo: {done.stderr}"]


def check_python(version: str, python: str, wheel: Path, *, is_first: bool) -> list[str]:
    """Use the wheel under one Python."""
    complaints: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_applications(folder)
        installed = environment(folder, python)
        began = time.monotonic()
        run(installed, "-m", "pip", "install", "--quiet", str(wheel))
        with server(folder, "hello.py") as (_, port):
            get(f"http://127.0.0.1:{port}/")
            first_s = time.monotonic() - began
        check_readme(folder)
        for words in SERVED[1:]:
            with server(folder, *words) as (_, port):
                get(f"http://127.0.0.1:{port}/")
        with server(folder, "hello.py", "--ssl-dev") as (_, port):
            get(f"https://127.0.0.1:{port}/")
        with server(folder, "hello.py", "--workers", "2") as (process, port):
            get(f"http://127.0.0.1:{port}/")
            # Of two: the pages of libraries count for one alone as if no other process had them.
            memory_mb = max(memory_mb_of(int(pid)) for pid in children(process.pid))
            reload(process, port)
        import_ms = import_ms_of(installed, folder, "import citius")
        app_ms = import_ms_of(installed, folder, "from citius import App")
        if is_first:
            check_lab(folder, installed)
            check_upgrade(folder, installed, wheel)
    print(
        f"Python {version}: first response {first_s:.1f} s after `pip install` began, "
        f"`import citius` {import_ms:.0f} ms (`App` {app_ms:.0f} ms), a worker {memory_mb:.1f} MB"
    )
    if first_s > FIRST_RESPONSE_S_MAX:
        complaints.append(f"{version}: {first_s:.1f} s to the first response")
    if import_ms > IMPORT_MS_MAX:
        complaints.append(f"{version}: importing citius takes {import_ms:.0f} ms")
    if memory_mb > WORKER_MB_MAX:
        complaints.append(f"{version}: a worker takes {memory_mb:.1f} MB")
    return complaints


def check_readme(folder: Path) -> None:
    """The README's first minute: its code, its commands, and the responses that it shows."""
    if shutil.which("curl") is None:
        sys.stderr.write("without: the README's commands (no curl)\n")
        return
    text = (ROOT / "README.md").read_text()
    code, session = (block_of(text, kind) for kind in ("python", "console"))
    own = folder / "readme"
    own.mkdir()
    (own / "hello.py").write_text(code)
    begin, *requests = re.findall(r"^\$ (.+)\n((?:[^$].*\n)*)", session, re.M)
    assert begin == ("citius serve hello.py", ""), session
    assert requests, session
    with server(own, "hello.py", citius=(str(folder / "venv/bin/citius"),)) as (_, port):
        for command, shown in requests:
            said = run("sh", "-c", command.replace("localhost:8000", f"127.0.0.1:{port}"))
            assert said == shown.strip(), f"{command}: {said}"


def block_of(page: str, kind: str) -> str:
    """Return the first block of code of one kind."""
    found = re.search(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)
    assert found is not None, kind
    return found[1]


def check_lab(folder: Path, python: str) -> None:
    """Install the lab from its wheel and measure one contestant for a few seconds."""
    run(python, "-m", "pip", "install", "--quiet", str(lab_wheel()))
    citius = str(Path(python).with_name("citius"))
    cache = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache")}
    run(citius, "load", "--help")
    run(citius, "lab", "run", "quick", "--only", "citius", "--budget", "20", cwd=folder, env=cache)
    reports = list(folder.glob("citius-lab/quick-*/report.html"))
    assert len(reports) == 1, "citius lab run quick leaves a report in ./citius-lab/"
    print(f"citius lab run quick: a report of {reports[0].stat().st_size} bytes")


def lab_wheel() -> Path:
    """Return the lab's wheel for this machine."""
    (wheel,) = DIST.glob(f"citius_lab-*manylinux*{os.uname().machine}.whl")
    return wheel


def shoot_outs() -> tuple[list[str], int]:
    """`citius lab run quick` under each Python; what is built for one serves the next, where it can."""
    complaints: list[str] = []
    checked = 0
    with tempfile.TemporaryDirectory() as cache:
        for version, python, wheel in own_pythons():
            complaints += [f"{version}: {one}" for one in shoot_out(version, python, wheel, cache)]
            checked += 1
    return complaints, checked


def shoot_out(version: str, python: str, wheel: Path, cache: str) -> list[str]:
    """Run it in an empty folder, from nothing but wheels; say who took part and what is wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        installed = environment(folder, python)
        # The extra's own requirement of a lab is met by the one beside it, not by an index.
        distributions = [f"{wheel}[lab]", str(lab_wheel())]
        began = time.monotonic()
        run(installed, "-m", "pip", "install", "--quiet", "--only-binary=:all:", *distributions)
        install_s = time.monotonic() - began
        empty = folder / "empty"
        empty.mkdir()
        # Of nothing that this person has set; the lock is for measurements, which this is not.
        own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS)}
        env = {**own, "XDG_CACHE_HOME": cache, "CITIUS_LAB_LOCK": str(folder / "lock")}
        began = time.monotonic()
        said = run(
            str(Path(installed).with_name("citius")), "lab", "run", "quick",
            "--budget", str(SHOOT_OUT_S), cwd=empty, env=env,
        )  # fmt: skip
        run_s = time.monotonic() - began
        reports = list(empty.glob("citius-lab/quick-*/report.html"))
        if [one.name for one in empty.iterdir()] != ["citius-lab"] or len(reports) != 1:
            return [f"expected one report in ./citius-lab/ and nothing else: {said}"]
        results = reports[0].parent
        asked = json.loads((results / "run.json").read_text())["contestants"]
        records = list(map(json.loads, (results / "records.jsonl").read_text().splitlines()))
    took_part = sorted({one["contestant"] for one in records if one["kind"] == "measurement"})
    left_out = {one["contestant"]: one["reason"] for one in records if one["kind"] == "left out"}
    without = "; ".join(f"{name}: {reason}" for name, reason in left_out.items())
    print(
        f"Python {version}: citius lab run quick --budget {SHOOT_OUT_S}: installed in {install_s:.0f} s, "
        f"run in {run_s:.0f} s with what had to be built; took part: {', '.join(took_part)}; "
        f"left out: {without or 'none'}",
        flush=True,
    )
    complaints = [
        f"{name} was left out: not said" for name in left_out if f"left out: {name}" not in said
    ]
    silent = {one["name"] for one in asked} - {*took_part, *left_out}
    complaints += [f"{name} neither took part nor was left out" for name in sorted(silent)]
    complaints += ["citius did not take part"] if "citius" not in took_part else []
    return [*complaints, *faults_of(records)]


def faults_of(records: list[dict[str, Any]]) -> list[str]:
    """Return what a run of the lab found wrong with contestants, each of it once."""
    found: list[str] = []
    for one in records:
        if one["kind"] == "start":
            found += [
                f"{one['contestant']}: {item}: {fault}"
                for item, fault in one["conduct_faults"].items()
            ]
        elif one["kind"] == "measurement" and one["fault"] is not None:
            found.append(f"{one['contestant']}, {one['series']} {one['case']}: {one['fault']}")
        elif one["kind"] == "fault":
            found.append(f"{one['contestant']}: {one['message']}")
    return list(dict.fromkeys(found))


def check_upgrade(folder: Path, python: str, wheel: Path) -> None:
    """Install the wheel of the next version and send USR2, while requests go on; none of them fails."""
    following = next_version(wheel, folder)
    before, after = wheel.name.split("-")[1], following.name.split("-")[1]
    (folder / "versioned.py").write_text(VERSIONED)
    # The first server ends when the second one serves; whose process it is, the pid file says.
    with server(folder, "versioned.py", "--workers", "2", "--pidfile", "pid", is_upgraded=True) as (
        process,
        port,
    ):
        with Load(port) as load:
            load.wait_for(before)
            run(python, "-m", "pip", "install", "--quiet", "--no-deps", str(following))
            process.send_signal(signal.SIGUSR2)
            load.wait_for(after)
            process.wait(60)
        os.kill(int((folder / "pid").read_text()), signal.SIGTERM)
    assert not load.failures, f"requests failed during the upgrade: {load.failures[:5]}"
    print(f"upgrade by USR2 from {before} to {after}: {load.responses} requests, none lost")


class Load:
    """Requests without a pause, each on a connection of its own, by two threads; what became of them."""

    def __init__(self, port: int) -> None:
        self.responses = 0
        self.failures: list[str] = []
        self._port = port
        self._seen: set[str] = set()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(2)]

    def __enter__(self) -> Load:
        """Begin."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                url = f"http://127.0.0.1:{self._port}/"
                with urllib.request.urlopen(url, timeout=20) as response:
                    self._seen.add(json.load(response)["version"])
                self.responses += 1
            except OSError as error:
                self.failures.append(repr(error))

    def wait_for(self, version: str) -> None:
        """Wait until a response names it."""
        until = time.monotonic() + 60
        while version not in self._seen:
            assert time.monotonic() < until, f"no response of {version}: {self.failures[:5]}"
            time.sleep(0.02)


def next_version(wheel: Path, folder: Path) -> Path:
    """Make a wheel as that one, whose version is the next."""
    name, version, *tags = wheel.name.split("-")
    major, minor, patch = version.split(".")
    following = f"{major}.{minor}.{int(patch) + 1}"
    made = folder / "-".join([name, following, *tags])
    records = f"{name}-{version}.dist-info/", f"{name}-{following}.dist-info/"
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == records[0] + "METADATA":
                data = data.replace(
                    f"\nVersion: {version}\n".encode(), f"\nVersion: {following}\n".encode()
                )
            elif entry.filename == records[0] + "RECORD":
                # Without the sum of what has changed; installers check none of them.
                text = data.decode().replace(*records)
                data = re.sub(r"(METADATA),sha256=[^,]*,\d*", r"\1,,", text).encode()
            new.writestr(entry.filename.replace(*records), data)
    return made


def foreign_pythons() -> list[Foreign]:
    """Return the Pythons for other processors and another C library that this machine can run."""
    found: list[Foreign] = []
    if os.uname().machine != "aarch64":
        for suite in SUITES:
            for line in run(str(ROOT / "scripts/python-aarch64"), suite).splitlines():
                version, root = line.split()
                emulator = ("qemu-aarch64-static", "-L", root)
                interpreter = f"{root}/usr/bin/python{version}"
                found.append(Foreign("manylinux", "aarch64", version, emulator, interpreter))
    if list(DIST.glob("citius-*musllinux*x86_64.whl")):
        for line in run(str(ROOT / "scripts/python-musl")).splitlines():
            version, interpreter = line.split()
            # It has no ssl, which uvloop imports.
            plain = ("--loop", "asyncio")
            found.append(Foreign("musllinux", "x86_64", version, (), interpreter, plain))
    return found


def check_foreign(foreign: Foreign) -> list[str]:
    """Serve from the wheel for it, and run the generator of the lab's."""
    if not (wheel := wheel_for(foreign.version, foreign.machine, foreign.library)):
        return []
    (lab,) = DIST.glob(f"citius_lab-*{foreign.library}*{foreign.machine}.whl")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_applications(folder)
        platforms = [f"--platform={tag}_{foreign.machine}" for tag in COMPATIBLE[foreign.library]]
        run(
            str(TOOLS / "pip"), "install", "--quiet", "--only-binary=:all:", *platforms,
            f"--python-version={foreign.version}", f"--target={folder / 'site'}", str(wheel),
        )  # fmt: skip
        python = (*foreign.emulator, foreign.interpreter, "-m", "citius")
        env = {**os.environ, "PYTHONPATH": str(folder / "site"), "PYTHONDONTWRITEBYTECODE": "1"}
        for words in (*SERVED, ("hello.py", "--workers", "2")):
            with server(folder, *words, *foreign.options, citius=python, env=env) as (_, port):
                get(f"http://127.0.0.1:{port}/")
        secured = ("hello.py", "--ssl-dev", *foreign.options)
        with server(folder, *secured, citius=python, env=env) as (_, port):
            get(f"https://127.0.0.1:{port}/")
        with zipfile.ZipFile(lab) as archive:
            generator = archive.extract("citius_lab/bin/citius-load", folder)
        Path(generator).chmod(0o755)
        run(*foreign.emulator, generator, "--help")
    print(f"{wheel.name}: serves, the lab's generator runs")
    return []


def build_sources() -> None:
    """Install both source distributions with cargo alone; without optimisation, which takes longer."""
    sources = sorted(map(str, DIST.glob("*.tar.gz")))
    fast = {"LTO": "off", "CODEGEN_UNITS": "16", "OPT_LEVEL": "0"}
    # A machine with cargo and a C compiler: no maturin, no zig, nothing of this checkout.
    kept = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
    env = {
        **kept,
        **{f"CARGO_PROFILE_RELEASE_{name}": value for name, value in fast.items()},
        "HOME": str(Path.home()),
        "PATH": f"{Path(shutil.which('cargo') or '').parent}:/usr/bin:/bin",
    }
    with tempfile.TemporaryDirectory() as folder:
        python = environment(Path(folder), sys.executable)
        began = time.monotonic()
        run(python, "-m", "pip", "install", "--quiet", *sources, cwd=Path(folder), env=env)
        citius = str(Path(python).with_name("citius"))
        print(
            run(citius, "--version", cwd=Path(folder)),
            f"from sources in {time.monotonic() - began:.0f} s",
        )
        run(citius, "load", "--help", cwd=Path(folder))


def write_applications(folder: Path) -> None:
    """Write what is served."""
    for file, text in APPLICATIONS.items():
        (folder / file).write_text(text)


def environment(folder: Path, python: str) -> str:
    """Make an empty environment; return its interpreter."""
    run(python, "-m", "venv", str(folder / "venv"))
    return str(folder / "venv" / "bin" / "python")


@contextlib.contextmanager
def server(
    folder: Path,
    *words: str,
    citius: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    is_upgraded: bool = False,
) -> Generator[tuple[subprocess.Popen[str], int]]:
    """Run `citius serve`; it has to end with code 0 when it is told to, or when another has taken its place.

    Args:
        folder: Where the applications are, and the environment.
        words: The application and its options.
        citius: The command, if it is not that of the environment.
        env: Its variables.
        is_upgraded: It ends by itself.
    """
    start = citius or (str(folder / "venv/bin/citius"),)
    command = [*start, "serve", *words, "--port", "0", "--no-access-log"]
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(command, cwd=folder, stderr=log, text=True, env=env)
    try:
        yield process, port_of(process, folder / "log")
        if not is_upgraded:
            process.terminate()
        assert process.wait(30) == 0, f"{command} ended with {process.returncode}"
    finally:
        process.kill()


def port_of(process: subprocess.Popen[str], log: Path) -> int:
    """Return the port as soon as the log names it."""
    # An emulated Python takes a minute on a busy machine.
    until = time.monotonic() + 180
    while time.monotonic() < until and process.poll() is None:
        if found := re.search(r"serv\w+ on https?://[^:]+:(\d+)", log.read_text()):
            return int(found[1])
        time.sleep(0.02)
    raise AssertionError(f"no server: {log.read_text()}")


def reload(process: subprocess.Popen[str], port: int) -> None:
    """New workers by HUP, while requests go on; none of those fails."""
    before = children(process.pid)
    process.send_signal(signal.SIGHUP)
    until = time.monotonic() + 60
    while before & children(process.pid) and time.monotonic() < until:
        get(f"http://127.0.0.1:{port}/")
    assert not before & children(process.pid), "the workers before the reload are still there"


def get(url: str) -> None:
    """Request it; the response is what every application responds."""
    trusting = ssl._create_unverified_context() if url.startswith("https") else None
    with urllib.request.urlopen(url, timeout=20, context=trusting) as response:
        assert json.load(response) == {"hello": "world"}


def children(pid: int) -> set[str]:
    """Return the processes below one."""
    return set(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


def memory_mb_of(pid: int) -> float:
    """Return the memory of a process, with its share of what others use too (PSS, as in the lab)."""
    found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M)
    return int(found[1]) / 1000 if found else 0.0


def import_ms_of(python: str, folder: Path, statement: str) -> float:
    """Return the CPU time of an import; the best of five, for the machine may be busy."""
    program = (
        f"import time; began = time.process_time(); {statement}\n"
        "print((time.process_time() - began) * 1000)"
    )
    return min(float(run(python, "-c", program, cwd=folder)) for _ in range(5))


def run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Return what a command prints; its failure is ours."""
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"check-dist: {' '.join(command)}: {done.stdout}{done.stderr}")
    sys.stderr.write(
        "".join(f"{line}\n" for line in done.stderr.splitlines() if line.startswith("without: "))
    )
    return done.stdout.strip()


if __name__ == "__main__":
    main()
