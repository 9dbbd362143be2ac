"""Contestants: folders with a ``contestant.toml``, built under ``lab/.build/<name>/``.

A definition names commands as lists of words with placeholders: ``{source}`` (the folder),
``{shared}`` (what contestants of one language share), ``{build}`` (its own, git-ignored), ``{builds}``
(the folder of all of these: ``{build}`` need not exist, so that nothing is beside it),
``{venv}`` (its Python environment), ``{packages}`` (what is installed in there), ``{citius}`` (the
``citius`` beside ``{python}``), ``{cert}`` and ``{key}`` (for TLS), ``{port}`` and ``{workers}``. No
shell is involved.

A definition with ``of = "other"`` is a variant: it takes over every key that it does not give
itself, and shares the other's build, so that one server with two starts is built once.

A build leaves a stamp, a hash of everything it was made from; a contestant whose stamp still holds
is not built again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from citius_lab import paths
from citius_lab.definitions import certificate, reader, services, wires
from citius_lab.definitions.reader import NOT_A_KEY, expect_known
from citius_lab.definitions.wires import Wire  # noqa: TC001 (the reader of definitions evaluates annotations)
from citius_lab.definitions.workloads import contract
from citius_lab.errors import BuildError, DefinitionError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """An environment that is made for a contestant.

    Attributes:
        version: Version of its Python: ``running`` (``python()``), such as ``3.6``, or ``pypy3``.
        requirements: The file with what is installed in it, pinned.
    """

    version: str
    requirements: str = "requirements.txt"


@dataclass(frozen=True, slots=True)
class Contestant:
    """One server, as its ``contestant.toml`` describes it.

    Attributes:
        rules: ``production`` (documented settings only), ``tuned``, or ``floor`` (not a server
            for production).
        maintainer: Who looks after the definition, where that may be a conflict of interest.
        records: Whether MessagePack is decoded into a ``struct`` or a ``dict``.
        needs: Toolchains that have to be on PATH; ``citius`` and ``no-gil`` are of ``python()``, and
            ``nginx-http3`` is an nginx that was built with HTTP/3.
        services: Databases that have to run beside it; its environment says where they are.
        is_foreign: Whether it is not the lab's, run where it lies: not built, not hashed.
        workers: What ``--workers`` counts: ``processes``, or ``threads`` of one process.
        lacks: Items of ``verify.Conduct`` that its documentation says it does not have; they are no
            faults of it, and what needs them is not measured on it. HTTP/1.1 lets a server do without
            pipelining alone: it may close a connection after any response.
        wires: What it speaks on its port, as ``wires`` names it.
        start: The words that start it without TLS; none where it speaks nothing without.
        start_h2c: The words that start it where clear-text HTTP/2 takes others than HTTP/1.1.
        start_tls: The words that start it with TLS, for both versions.
        start_rpc: The words that start it with procedures on its port.
        app: The file that is the application, where contestants are compared by its lines, too.
        of: The folder beside its own whose build it uses; empty if it is no variant.
        python: The Python environment of its own, if it needs one.
        uncounted: Why its instructions are not counted, where valgrind would give no honest figure.
    """

    name: str
    language: str
    label: str
    note: str
    json: str
    records: str
    workloads: tuple[str, ...]
    source: Path = field(metadata=NOT_A_KEY)
    build_root: Path = field(metadata=NOT_A_KEY)
    rules: Literal["production", "tuned", "floor"] = "production"
    maintainer: str = "lab"
    workers: Literal["processes", "threads"] = "processes"
    lacks: tuple[Literal["pipelined"], ...] = ()
    wires: tuple[Wire, ...] = (wires.HTTP1,)
    start: tuple[str, ...] = ()
    start_h2c: tuple[str, ...] = ()
    start_tls: tuple[str, ...] = ()
    start_rpc: tuple[str, ...] = ()
    app: str = ""
    of: str = ""
    needs: tuple[str, ...] = ()
    services: tuple[services.ServiceName, ...] = ()
    build: tuple[tuple[str, ...], ...] = ()
    version: tuple[str, ...] = ()
    python: PythonEnvironment | None = None
    uncounted: str = ""
    env: dict[str, str] = field(default_factory=dict[str, str])
    is_foreign: bool = field(default=False, metadata=NOT_A_KEY)

    @property
    def shared(self) -> Path:
        """The folder with what contestants of one language have in common."""
        return self.source.parent / "shared"

    @property
    def build_dir(self) -> Path:
        """Where its build output lives."""
        return self.build_root / (self.of or self.name)

    @property
    def build_source(self) -> Path:
        """The folder it is built from: its own, or that of the contestant it is a variant of."""
        return self.source.parent / self.of if self.of else self.source

    @property
    def venv(self) -> Path:
        """Its own Python environment."""
        return self.build_dir / "venv"

    @property
    def packages(self) -> Path:
        """Where the packages of that environment are, for a server on ``python()``."""
        major, minor = python_version()
        flag = "t" if python_is_free_threaded() else ""
        return self.venv / "lib" / f"python{major}.{minor}{flag}" / "site-packages"

    def app_lines(self) -> int | None:
        """Return how many lines its application has, blank ones and comments left out."""
        if not self.app:
            return None
        lines = map(str.strip, (self.source / self.app).read_text().splitlines())
        return sum(bool(line) and not line.startswith(("#!", "# ", "//")) for line in lines)

    def missing(self) -> str | None:
        """Return why it cannot be built or run on this machine, ``None`` if it can."""
        for tool in self.needs:
            if tool == "citius":
                if citius_command() is None:
                    return f"needs citius in the environment of {python()} (pip install citius)"
            elif tool == "no-gil":
                if not python_is_free_threaded():
                    return (
                        f"needs a CPython without a GIL, which {PYTHON} names ({python()} has one)"
                    )
            elif tool == "nginx-http3":
                if not nginx_has_http3():
                    return (
                        "needs an nginx with HTTP/3 on PATH (1.25 or newer, --with-http_v3_module)"
                    )
            elif shutil.which(tool) is None:
                return f"needs {tool}, which is not on PATH"
        if (reason := services.missing(self.services)) is not None:
            return reason
        version = None if self.python is None else self.python.version
        if version is not None and python_command(version) is None:
            if version == "pypy3":
                return "needs pypy3 with its venv module (Debian: pypy3-venv)"
            return f"needs Python {version} (python{version} on PATH, or a pyenv version)"
        return None

    def built(self) -> bool:
        """Tell whether the last build was made from what is there now."""
        if not self.build and self.python is None:
            return True
        with contextlib.suppress(OSError):
            return (self.build_dir / "stamp").read_text() == self.fingerprint()
        return False

    def last_failure(self) -> str | None:
        """Return the last line of what went wrong when this very source was last built."""
        with contextlib.suppress(OSError):
            stamp, _, text = (self.build_dir / "failure").read_text().partition("\n")
            if stamp == self.fingerprint():
                return text.strip().splitlines()[-1] if text.strip() else "it failed silently"
        return None

    def fingerprint(self) -> str:
        """Return a hash of everything a build is made from."""
        version = None if self.python is None else self.python.version
        on = python_text() if self.language == "Python" else ""
        digest = hashlib.sha256(f"{version} {on}".encode())
        for folder in (self.build_source, self.shared / self.language.lower()):
            for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
                made = {"__pycache__", "target"} & set(path.parts)
                if path.is_file() and not made and path.suffix != ".md":
                    digest.update(f"{path.relative_to(folder)}\0".encode())
                    digest.update(path.read_bytes())
        return digest.hexdigest()

    def make(self) -> None:
        """Build it, whatever the stamp says; output goes to ``<build>/log``.

        Raises:
            BuildError: A command failed; the message ends with the log's last lines.
        """
        if (reason := self.missing()) is not None:
            raise BuildError(f"{self.name} cannot be built here: {reason}")
        self.build_dir.mkdir(parents=True, exist_ok=True)
        (self.build_dir / "stamp").unlink(missing_ok=True)
        log_path = self.build_dir / "log"
        with log_path.open("wb") as log:
            for command in [*self._venv_commands(), *self._build_commands()]:
                log.write(f"$ {' '.join(command)}\n".encode())
                log.flush()
                code = run_logged(command, cwd=self.build_source, log=log)
                if code != 0:
                    lines = tail(log_path)
                    end = "\n".join(lines)
                    (self.build_dir / "failure").write_text(f"{self.fingerprint()}\n{end}\n")
                    # Of several lines, a report has the first.
                    raise BuildError(
                        f"{self.name} does not build: {command[0]} ended with code {code}: "
                        f"{lines[-1].strip()}; the log is {log_path}\n{end}"
                    )
        (self.build_dir / "failure").unlink(missing_ok=True)
        (self.build_dir / "stamp").write_text(self.fingerprint())

    def _venv_commands(self) -> Iterable[list[str]]:
        if self.python is None:
            return
        base = python_command(self.python.version)
        assert base is not None, "missing() was asked first"
        own_python = str(self.venv / "bin" / "python")
        yield [base, "-m", "venv", "--clear", str(self.venv)]
        if self.python.version in ("3.6", "3.7"):
            # The pip these bring along does not know today's wheel tags.
            yield [own_python, "-m", "pip", "install", "--quiet", "pip==21.3.1"]
        requirements = str(self.build_source / self.python.requirements)
        yield [own_python, "-m", "pip", "install", "--quiet", "-r", requirements]

    def _build_commands(self) -> Iterable[list[str]]:
        base = replace(self, name=self.build_dir.name, source=self.build_source, of="")
        return (base._fill(words) for words in self.build)

    def manner_of(self, wire: str) -> str:
        """Return which of its starts speaks ``wire``: ``plain``, ``h2c``, ``tls`` or ``rpc``."""
        if wire == wires.RPC:
            return "rpc"
        if wires.is_tls(wire):
            return "tls"
        return "h2c" if wire == wires.H2C and self.start_h2c else "plain"

    def wires_of(self, manner: str) -> list[Wire]:
        """Return what the start of that name speaks."""
        return [wire for wire in self.wires if self.manner_of(wire) == manner]

    def command(
        self, *, port: int, workers: int, manner: str = "plain", is_reachable: bool = False
    ) -> list[str]:
        """Return the words that start it: on 127.0.0.1, or on all addresses if it ``is_reachable``."""
        starts = {
            "plain": self.start,
            "h2c": self.start_h2c,
            "tls": self.start_tls,
            "rpc": self.start_rpc,
        }
        words = self._fill(starts[manner], port=port, workers=workers)
        return [word.replace("127.0.0.1", "0.0.0.0") for word in words] if is_reachable else words

    def environment(self) -> dict[str, str]:
        """Return its whole environment: the person's own settings do not reach a contestant."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        # A worker is one thread, also on a Python without a GIL; a contestant that has more says so.
        kept["CITIUS_REACTOR_THREADS"] = "1"
        return kept | {name: self._fill([value])[0] for name, value in self.env.items()}

    def version_text(self) -> str:
        """Return what it says its version is, or how it could not be asked."""
        if not self.version:
            return ""
        try:
            done = subprocess.run(
                self._fill(self.version),
                capture_output=True,
                text=True,
                timeout=20,
                env=os.environ | self.environment(),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"unknown ({error})"
        lines = [line.strip() for line in done.stdout.splitlines()]
        # `go version -m` lists every module; the compiler and the direct ones are enough.
        return "; ".join(" ".join(line.split()) for line in lines if not line.startswith("build"))[
            :400
        ]

    def as_record(self, *, asked: bool = True) -> dict[str, Any]:
        """Return what a report says of it.

        Args:
            asked: Whether it may be asked for its version: it is built.
        """
        return {
            "name": self.name,
            "language": self.language,
            "label": self.label,
            "note": self.note,
            "json": self.json,
            "records": self.records,
            "rules": self.rules,
            "maintainer": self.maintainer,
            "workers": self.workers,
            "lacks": list(self.lacks),
            "wires": list(self.wires),
            "workloads": list(self.workloads),
            "app_lines": self.app_lines(),
            "version": self.version_text() if asked else "",
            "fingerprint": "" if self.is_foreign else self.fingerprint(),
        }

    def _fill(self, words: Iterable[str], *, port: int = 0, workers: int = 1) -> list[str]:
        cert, key = certificate.paths(self.build_root)
        values = {
            "source": str(self.source),
            "shared": str(self.shared),
            "build": str(self.build_dir),
            "builds": str(self.build_root),
            "venv": str(self.venv),
            "packages": str(self.packages),
            "citius": citius_command() or "citius",
            "python": python(),
            "cert": str(cert),
            "key": str(key),
            "port": str(port),
            "workers": str(workers),
        }
        return [_fill_word(word, values) for word in words]


def load(folders: Iterable[Path], build_root: Path | None = None) -> dict[str, Contestant]:
    """Read every definition under ``folders``; later folders win.

    Raises:
        DefinitionError: A definition cannot be read.
    """
    found: dict[str, Contestant] = {}
    for folder in folders:
        if not folder.is_dir():
            raise DefinitionError(f"no folder {folder}; expected one folder per contestant in it")
        for path in sorted(folder.glob("*/contestant.toml")):
            contestant = read(path, build_root or paths.default_build_root())
            found[contestant.name] = contestant
    return found


def read(path: Path, build_root: Path) -> Contestant:
    """Read one ``contestant.toml``.

    Raises:
        DefinitionError: It is not TOML, lacks a key, or has an unknown one.
    """
    table = reader.read(path)
    if (of := table.get("of", "")) != "":
        table = _base_of(path, of) | table
    given = {"source": path.parent.resolve(), "build_root": build_root}
    contestant = reader.convert(Contestant, table, path, **given)
    for number, name in enumerate(contestant.workloads):
        expect_known(path, f"workloads[{number}]", name, contract().workloads)
    if bool(contestant.start_tls) != any(map(wires.is_tls, contestant.wires)):
        raise DefinitionError(f"{path}: wires over TLS and start_tls go together")
    if bool(contestant.start_rpc) != (wires.RPC in contestant.wires):
        raise DefinitionError(f"{path}: the wire {wires.RPC} and start_rpc go together")
    if bool(contestant.start) != bool(contestant.wires_of("plain")):
        raise DefinitionError(f"{path}: wires that are not encrypted and start go together")
    for name in contestant.workloads:
        messages = contract().workloads[name].messages
        if {_messages(wire) for wire in contestant.wires} != {messages}:
            message = (
                f"{path}: a workload of {messages or 'requests'} needs wires of these alone, not"
            )
            raise DefinitionError(f"{message} {name!r} and {', '.join(contestant.wires)}")
    return contestant


def _messages(wire: str) -> str:
    if wires.is_webtransport(wire):
        return "webtransport"
    return "websocket" if wire == wires.WS else ""


def _base_of(path: Path, of: str) -> dict[str, Any]:
    """Return the keys of the contestant ``of``, whose variant is defined at ``path``."""
    base = path.parent.parent / of / "contestant.toml"
    try:
        table = reader.read(base)
    except DefinitionError as error:
        raise DefinitionError(f"{path}: it is a variant of {of!r}, but {error}") from error
    if "of" in table:
        raise DefinitionError(f"{path}: {of!r} is a variant itself; name {table['of']!r}")
    return table


def choose(found: dict[str, Contestant], names: Iterable[str]) -> list[Contestant]:
    """Return the contestants of the given names, all without any.

    Raises:
        DefinitionError: There is none of that name.
    """
    names = list(names)
    for name in names:
        if name not in found:
            raise DefinitionError(f"no contestant is called {name!r}; there are {_list(found)}")
    return [found[name] for name in names] if names else list(found.values())


def python() -> str:
    """Return the interpreter of Python contestants: that of CITIUS_LAB_PYTHON, or the lab's own."""
    return os.environ.get(PYTHON) or sys.executable


def python_text() -> str:
    """Return which Python that is, such as ``CPython 3.14.3``.

    Raises:
        DefinitionError: It does not start, or is none.
    """
    return _asked(python())[0]


def python_version() -> tuple[int, int]:
    """Return its version.

    Raises:
        DefinitionError: It does not start, or is none.
    """
    return _asked(python())[1]


def python_is_free_threaded() -> bool:
    """Tell whether it is one without a GIL."""
    return "without a GIL" in python_text()


@functools.cache
def _asked(command: str) -> tuple[str, tuple[int, int]]:
    """Ask an interpreter what it is."""
    try:
        done = subprocess.run(
            [command, "-I", "-S", "-c", _ASK],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        text, major, minor = done.stdout.rsplit(maxsplit=2)
        return text, (int(major), int(minor))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise DefinitionError(
            f"{PYTHON} is {command!r}, which is not a Python interpreter: {error}"
        ) from error


@functools.cache
def nginx_has_http3() -> bool:
    """Tell whether the nginx on PATH was built with HTTP/3."""
    try:
        done = subprocess.run(
            ["nginx", "-V"], stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return b"--with-http_v3_module" in done.stderr


def citius_command() -> str | None:
    """Return the ``citius`` of the contestants' environment; of PATH if that is the lab's own."""
    beside = Path(python()).with_name("citius")
    if beside.exists() or PYTHON in os.environ:
        return str(beside) if beside.exists() else None
    return shutil.which("citius")


def python_command(version: str) -> str | None:
    """Return an interpreter of ``version``: the contestants', one on PATH, or one of pyenv."""
    if version in ("running", "{}.{}".format(*python_version())):
        return python()
    if version == "pypy3":
        return shutil.which(version)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for folder in sorted(root.glob(f"versions/{version}.*"), reverse=True):
        if (command := folder / "bin" / "python").exists():
            return str(command)
    # A pyenv shim of that name exists for every version and may refuse to run, so it comes last.
    on_path = shutil.which(f"python{version}")
    return None if on_path is None or "shims" in Path(on_path).parts else on_path


def _fill_word(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word


def run_logged(command: list[str], *, cwd: Path, log: Any) -> int:
    """Run one build command to its end; Ctrl-C ends its whole group."""
    try:
        with _started(command, cwd=cwd, stdout=log, stderr=subprocess.STDOUT) as process:
            return process.wait()
    except OSError as error:
        log.write(f"{command[0]}: {error}\n".encode())
        return 127


def run_read(command: list[str], *, cwd: Path) -> tuple[int, str, str]:
    """Do the same and return what it said, on standard output and on standard error.

    Raises:
        OSError: It does not start.
    """
    pipe = subprocess.PIPE
    with _started(command, cwd=cwd, stdout=pipe, stderr=pipe, text=True) as process:
        said, complained = process.communicate()
    return process.returncode, said, complained


_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def _started(command: list[str], **options: Any) -> Generator[subprocess.Popen[Any]]:
    """Start a process in a session of its own; if its end cannot be waited for, kill the session.

    An interrupt waits until it has started: it may already run while ``Popen`` has not returned.
    """
    process = None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
    try:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before),
                **options,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        yield process
    except BaseException:
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise


def tail(path: Path, n_lines: int = 12) -> list[str]:
    """Return the last lines of a log."""
    return path.read_text(errors="replace").splitlines()[-n_lines:]


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)


# The interpreter of an environment with citius: Python contestants run on it, and are built for it.
PYTHON = "CITIUS_LAB_PYTHON"
_ASK = (
    "import platform, sys; has_gil = getattr(sys, '_is_gil_enabled', lambda: True)(); "
    "print(platform.python_implementation(), platform.python_version(), "
    "*([] if has_gil else ['without a GIL']), *sys.version_info[:2])"
)
# What a server may know of the person who runs the lab.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "LD_LIBRARY_PATH")
