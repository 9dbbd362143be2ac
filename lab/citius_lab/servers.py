"""How other servers serve somebody's own application: commands for ``citius lab bench``.

Each is started as its documentation says for production, without an access log. An application is
looked at in a process of its own, so that nothing of it runs inside the lab.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from citius_lab.contestants import Contestant, citius_command
from citius_lab.errors import ContestantError


@dataclass(frozen=True, slots=True)
class Way:
    """How one server is started.

    Attributes:
        module: What has to be importable; it is started with ``python -m``.
        words: By interface, what follows; ``{app}`` is the application.
    """

    module: str
    words: dict[str, tuple[str, ...]]


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
        },
    ),
    "gunicorn": Way(
        "gunicorn",
        {
            "asgi": (*_GUNICORN, "--worker-class", "uvicorn.workers.UvicornWorker"),
            # The default worker closes every connection after one answer.
            "wsgi": (*_GUNICORN, "--worker-class", "gthread", "--threads", "4"),
        },
    ),
    "hypercorn": Way(
        "hypercorn",
        {"asgi": ("{app}", "--bind", "127.0.0.1:{port}", "--workers", "{workers}")},
    ),
    "waitress": Way("waitress", {"wsgi": ("--listen=127.0.0.1:{port}", "{app}")}),
}


def interface_of(app: str, folder: Path) -> str:
    """Return whether an application is ``native``, ``asgi`` or ``wsgi``.

    Raises:
        ContestantError: It cannot be imported, or is nothing that can be called.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(_python_path(folder))}
    done = subprocess.run(
        [sys.executable, "-c", _LOOK, app],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    word = done.stdout.strip().splitlines()[-1:] or [""]
    if done.returncode != 0 or word[0] not in ("native", "asgi", "wsgi"):
        said = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        raise ContestantError(f"{app} cannot be looked at: {said[0]}")
    return word[0]


def serve(name: str, app: str, interface: str, folder: Path) -> Contestant:
    """Return the contestant that serves ``app`` with the server ``name``.

    Raises:
        ContestantError: There is no such server here, or it cannot serve that.
    """
    if name == "citius":
        command = citius_command()
        if command is None:
            raise ContestantError("citius is not installed in this environment")
        words = (command, "serve", app, *_CITIUS)
        return own(name, words, folder, version=_version("citius"))
    if name not in WAYS:
        raise ContestantError(
            f"no server is called {name!r}; there are citius, {', '.join(WAYS)}, git:REF, and --cmd"
        )
    way = WAYS[name]
    if interface not in way.words:
        what = "a Citius application" if interface == "native" else f"{interface.upper()}"
        raise ContestantError(f"{app} is {what}, which {name} cannot serve")
    if importlib.util.find_spec(way.module) is None:
        raise ContestantError(f"{name} is not installed beside the lab; pip install {name}")
    words = (sys.executable, "-m", way.module, *(_fill(word, app) for word in way.words[interface]))
    return own(name, words, folder, version=_version(name))


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


def _python_path(folder: Path) -> list[str]:
    return [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]


def _fill(word: str, app: str) -> str:
    return word.replace("{app}", app)


def _version(name: str) -> str:
    try:
        return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError:
        return shutil.which(name) or name


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
    sys.exit(f"{sys.argv[1]} is a {kind.__name__}, which cannot be called")
else:
    call = app if inspect.isroutine(app) else kind.__call__
    n_own = len(inspect.signature(app).parameters)
    print("asgi" if inspect.iscoroutinefunction(call) or n_own in (1, 3) else "wsgi")
"""
