"""How servers serve an application that is not the lab's: commands for ``citius lab bench``.

Each is started as its documentation says for production, without an access log, in an environment
that ``installations`` makes for it. An application is looked at in a process of its own, so that
nothing of it runs inside the lab.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from citius_lab.bench.installations import AppPython, Installation
from citius_lab.definitions import contestants
from citius_lab.definitions.contestants import Contestant, citius_command
from citius_lab.errors import DefinitionError
from citius_lab.processes.launch import printable


@dataclass(frozen=True, slots=True)
class Way:
    """How one server is started.

    Attributes:
        package: What is installed and started with ``python -m``; its folder in ``lab/servers``.
        words: By interface, what follows; ``{app}`` is the application, ``{venv}`` where it is installed.
        program: What is started instead of a module: its name beside the interpreter.
    """

    package: str
    words: dict[str, tuple[str, ...]]
    program: str = ""

    def command(self, python: str, app: str, interface: str) -> tuple[str, ...]:
        """Return what is started, by the interpreter whose packages it is among."""
        place = Path(python)
        first = (
            (str(place.with_name(self.program)),) if self.program else (python, "-m", self.package)
        )
        values = {"{app}": app, "{venv}": str(place.parents[1])}
        words = list(self.words[interface])
        for name, value in values.items():
            words = [word.replace(name, value) for word in words]
        return (*first, *words)


_UVICORN = (
    "{app}", "--host", "127.0.0.1", "--port", "{port}", "--workers", "{workers}",
    "--no-access-log", "--log-level", "warning",
)  # fmt: skip
_GRANIAN = (
    "{app}", "--host", "127.0.0.1", "--port", "{port}", "--workers", "{workers}",
    "--no-access-log", "--log-level", "warning",
)  # fmt: skip
_GUNICORN = (
    "{app}", "--bind", "127.0.0.1:{port}", "--workers", "{workers}", "--log-level", "warning",
)  # fmt: skip
WAYS = {
    "uvicorn": Way("uvicorn", {"asgi": _UVICORN, "wsgi": (*_UVICORN, "--interface", "wsgi")}),
    "granian": Way(
        "granian",
        {
            "asgi": (*_GRANIAN, "--interface", "asgi"),
            "wsgi": (*_GRANIAN, "--interface", "wsgi"),
            "rsgi": (*_GRANIAN, "--interface", "rsgi"),
        },
    ),
    "gunicorn": Way(
        "gunicorn",
        {
            "asgi": (*_GUNICORN, "--worker-class", "asgi"),
            # The default worker closes every connection after one answer.
            "wsgi": (*_GUNICORN, "--worker-class", "gthread", "--threads", "4"),
        },
    ),
    "gunicorn-sync": Way("gunicorn", {"wsgi": (*_GUNICORN, "--worker-class", "sync")}),
    "hypercorn": Way(
        "hypercorn",
        {
            interface: (prefix + "{app}", "--bind", "127.0.0.1:{port}", "--workers", "{workers}")
            for interface, prefix in (("asgi", ""), ("wsgi", "wsgi:"))
        },
    ),
    "waitress": Way("waitress", {"wsgi": ("--listen=127.0.0.1:{port}", "{app}")}),
    "uwsgi": Way(
        "uwsgi",
        {
            "wsgi": (
                "--http",
                "127.0.0.1:{port}",
                "--http-keepalive",
                "--master",
                "--processes",
                "{workers}",
                "--listen",
                "1024",
                "--die-on-term",
                "--disable-logging",
                "--virtualenv",
                "{venv}",
                "--module",
                "{app}",
            )
        },
        program="uwsgi",
    ),
}


def interface_of(app: str, folder: Path, python: AppPython | None = None) -> str:
    """Return whether an application is ``native``, ``asgi``, ``wsgi`` or ``rsgi``.

    Raises:
        DefinitionError: It cannot be imported, or is nothing that can be called.
    """
    command = sys.executable if python is None else python.command
    return _look(app, folder, command, {}, f"{app} cannot be looked at")


def _look(app: str, folder: Path, command: str, more: dict[str, str], what: str) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(_python_path(folder))} | more
    try:
        done = subprocess.run(
            [command, "-c", _LOOK, app],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DefinitionError(f"{what}: {error}") from error
    word = done.stdout.strip().splitlines()[-1:] or [""]
    if done.returncode != 0 or word[0] not in ("native", "asgi", "wsgi", "rsgi"):
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise DefinitionError(f"{what}: {printable(said[0])}")
    return word[0]


def serve(
    name: str, app: str, interface: str, folder: Path, python: AppPython, *, prefer_app: bool
) -> Contestant:
    """Return the contestant that serves ``app`` with the server ``name``, installed if need be.

    With ``prefer_app`` the server that is installed beside the application, if there is one, is
    taken instead of the lab's pinned one. ``python`` is the application's interpreter.

    Raises:
        DefinitionError: There is no such server, or it cannot serve that.
        BuildError: It cannot be installed.
    """
    if name == "citius":
        return _citius(app, interface, folder, python)
    if name not in WAYS:
        raise DefinitionError(
            f"no server is called {name!r}; there are citius, {', '.join(WAYS)}, git:REF, and --cmd"
        )
    way = WAYS[name]
    if interface not in way.words:
        what = "a Citius application" if interface == "native" else interface.upper()
        raise DefinitionError(
            f"{app} is {what}, which {name} cannot serve: it serves {_upper(way.words)}"
        )
    version = python.version_of(way.package) if prefer_app else None
    if version is not None:
        command, more = python.command, dict[str, str]()
        origin = " (application's)"
    else:
        installation = Installation(way.package, python)
        installation.make()
        command, more, origin = installation.command, installation.environment(), ""
        version = installation.version()
        _look(app, folder, command, more, f"{app} cannot be imported under {name} {version}")
    label = f"{way.package} {version}{origin}"
    words = way.command(command, app, interface)
    return own(name, words, folder, version=label, environment=more)


def _citius(app: str, interface: str, folder: Path, python: AppPython) -> Contestant:
    """Return Citius: the application's own if it has it, else the lab's with its packages."""
    if interface == "rsgi":
        raise DefinitionError(
            f"{app} is RSGI, which citius cannot serve; name who does: --server granian"
        )
    version = python.version_of("citius")
    beside = Path(python.command).with_name("citius")
    if version is not None and beside.exists():
        words = (str(beside), "serve", app, *_CITIUS)
        return own("citius", words, folder, version=f"citius {version}")
    command = citius_command()
    here = AppPython.of(contestants.python())
    version = here.version_of("citius")
    if command is None or version is None:
        raise DefinitionError("citius is not installed in this environment")
    if here.tag != python.tag:
        raise DefinitionError(
            f"this citius is installed for {here.tag}, the application's environment is "
            f"{python.tag}: install citius there, or name another --server"
        )
    # This environment is not the lab's to add a .pth to: the application's packages come before.
    path = os.pathsep.join([*_python_path(folder), *python.sites])
    more = {"PYTHONPATH": path}
    words = (command, "serve", app, *_CITIUS)
    return own("citius", words, folder, version=f"citius {version}", environment=more)


def own(
    name: str,
    words: tuple[str, ...],
    folder: Path,
    *,
    version: str = "",
    environment: dict[str, str] | None = None,
) -> Contestant:
    """Return a contestant that is no folder of definitions: it runs in ``folder``.

    It sees the person's environment variables, because the application may need them.
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(_python_path(folder))}
    return Contestant(
        name=name,
        language="Python",
        label=version or name,
        note="Named on the command line.",
        json="its own",
        records="none",
        start=words,
        workloads=(OWN,),
        source=folder,
        build_root=Path(os.devnull),
        env=env | (environment or {}),
        is_foreign=True,
    )


def app_python(named: Path | None) -> AppPython:
    """Return the application's interpreter: the one named, VIRTUAL_ENV's, or the lab's own.

    Raises:
        DefinitionError: It is none.
    """
    if named is not None:
        # A folder is a virtual environment; a name without a slash is looked up on PATH.
        command = str(named / "bin" / "python") if named.is_dir() else shutil.which(str(named))
        if command is None:
            raise DefinitionError(f"--python {named}: expected an interpreter or an environment")
    elif "VIRTUAL_ENV" in os.environ:
        command = str(Path(os.environ["VIRTUAL_ENV"], "bin", "python"))
    else:
        command = sys.executable
    return AppPython.of(os.path.abspath(command))


def _python_path(folder: Path) -> list[str]:
    return [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]


def _upper(interfaces: dict[str, tuple[str, ...]]) -> str:
    return " and ".join(name.upper() for name in interfaces)


# The workload of a request that is not of the contract.
OWN = "own"
_CITIUS = (
    "--host", "127.0.0.1", "--port", "{port}", "--workers", "{workers}",
    "--no-access-log", "--log-level", "warning",
)  # fmt: skip
_LOOK = """
import importlib, inspect, sys
module, _, name = sys.argv[1].partition(":")
app = importlib.import_module(module)
for part in (name or "app").split("."):
    app = getattr(app, part)
kind = type(app)
if kind.__module__.partition(".")[0] == "citius":
    print("native")
elif not callable(app):
    if hasattr(app, "__rsgi__"):
        print("rsgi")
    else:
        sys.exit(f"{sys.argv[1]} is a {kind.__name__}, which cannot be called")
else:
    call = app if inspect.isroutine(app) else kind.__call__
    n_own = len(inspect.signature(app).parameters)
    is_async = inspect.iscoroutinefunction(call)
    if is_async and n_own == 2:
        print("rsgi")
    else:
        print("asgi" if is_async or n_own in (1, 3) else "wsgi")
"""
