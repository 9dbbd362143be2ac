"""The servers of ``citius lab bench``, each in an environment of its own.

``lab/servers/NAME/requirements.txt`` pins a server with all it needs. It is installed when it is
first asked for, under ``lab/.build/servers/NAME/INTERPRETER``, on the interpreter of the
application's environment. A ``.pth`` file there appends the site-packages of the served application
(an environment variable names them), so that the application finds its packages *behind* the
server's own: one installation serves all applications of an interpreter.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius_lab import paths
from citius_lab.definitions import contestants
from citius_lab.errors import BuildError, DefinitionError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class AppPython:
    """The interpreter of an application's environment.

    Attributes:
        base: The interpreter behind the virtual environment.
        tag: Implementation and version, such as ``cpython-312``.
        sites: The folders with its packages.
        versions: What is installed there, by name.
    """

    command: str
    base: str
    tag: str
    sites: tuple[str, ...]
    versions: dict[str, str]

    @classmethod
    def of(cls, command: str) -> AppPython:
        """Ask an interpreter.

        Raises:
            DefinitionError: It does not start, or is none.
        """
        try:
            done = subprocess.run(
                [command, "-I", "-c", _ASK],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            found = json.loads(done.stdout)
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            raise DefinitionError(
                f"{command} is not the Python of an application: {error}; name one with --python"
            ) from error
        sites = tuple(found["sites"])
        return cls(command, found["base"], found["tag"], sites, found["versions"])

    def version_of(self, package: str) -> str | None:
        """Return which version of a package is installed there."""
        return self.versions.get(package)


@dataclass(frozen=True, slots=True)
class Installation:
    """One server on one interpreter."""

    name: str
    python: AppPython

    @property
    def lock(self) -> Path:
        """Its pinned packages."""
        return paths.lab_root() / "servers" / self.name / "requirements.txt"

    @property
    def folder(self) -> Path:
        """Where it is installed."""
        which = hashlib.sha256(self.python.base.encode()).hexdigest()[:8]
        root = paths.default_build_root() / "servers" / self.name
        return root / f"{self.python.tag}-{which}"

    @property
    def command(self) -> str:
        """Its interpreter."""
        return str(self.folder / "venv" / "bin" / "python")

    def environment(self) -> dict[str, str]:
        """Return the variables that let it find the application's packages."""
        return {SITES: os.pathsep.join(self.python.sites)}

    def fingerprint(self) -> str:
        """Return a hash of everything it is made from."""
        digest = hashlib.sha256(f"{self.python.base} {self.python.tag} {_PTH}".encode())
        digest.update(self.lock.read_bytes())
        return digest.hexdigest()

    def version(self) -> str:
        """Return the pinned version."""
        lines = self.lock.read_text().splitlines()
        return next(line.partition("==")[2] for line in lines if line.startswith(f"{self.name}=="))

    def built(self) -> bool:
        """Tell whether it is installed as the lock file says now."""
        with contextlib.suppress(OSError):
            return (self.folder / "stamp").read_text() == self.fingerprint()
        return False

    def make(self) -> None:
        """Install it unless it is; output goes to ``log`` in its folder.

        Raises:
            BuildError: A command failed; the message says what to do where it is the network.
        """
        if self.built():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "stamp").unlink(missing_ok=True)
        venv = self.folder / "venv"
        shutil.rmtree(venv, ignore_errors=True)
        pip = [self.command, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        log_path = self.folder / "log"
        with log_path.open("wb") as log:
            for command in (
                [self.python.base, "-m", "venv", str(venv)],
                [*pip, "--retries", "1", "--requirement", str(self.lock)],
            ):
                log.write(f"$ {' '.join(command)}\n".encode())
                log.flush()
                if contestants.run_logged(command, cwd=self.folder, log=log) != 0:
                    raise BuildError(self._failure(log_path))
        (site,) = venv.glob("lib/*/site-packages")
        (site / "citius_lab_application.pth").write_text(_PTH)
        (self.folder / "stamp").write_text(self.fingerprint())

    def _failure(self, log_path: Path) -> str:
        said = log_path.read_text(errors="replace")
        advice = ""
        if any(sign in said for sign in _NO_NETWORK):
            advice = (
                f"{NO_INDEX}: connect, or set PIP_INDEX_URL or PIP_FIND_LINKS "
                "(--prefer-installed takes the server beside the application); "
            )
        tail = "\n".join(contestants.tail(log_path, 6))
        return (
            f"{self.name} {self.version()} cannot be installed for {self.python.tag}: {advice}"
            f"the log is {log_path} and ends with\n{tail}"
        )


# The application's site-packages, for the .pth file of a server's environment.
SITES = "CITIUS_LAB_APP_SITES"
# No comprehension: its body would not see the names of a line that is executed in a function.
_PTH = (
    "import os, site; list(map(site.addsitedir, filter(None, "
    f"os.environ.get('{SITES}', '').split(os.pathsep))))\n"
)
NO_INDEX = "no package index could be reached"
_NO_NETWORK = (
    "NewConnectionError", "NameResolutionError", "Failed to establish a new connection",
    "Temporary failure in name resolution", "ProxyError", "ConnectTimeoutError",
)  # fmt: skip
_ASK = """
import json, os, sys, sysconfig
from importlib.metadata import distributions
paths = sysconfig.get_paths()
sites = [paths["purelib"], paths["platlib"]]
print(json.dumps({
    "base": os.path.realpath(getattr(sys, "_base_executable", sys.executable)),
    "tag": sys.implementation.cache_tag,
    "sites": list(dict.fromkeys(sites)),
    "versions": {
        (one.metadata["Name"] or "").lower(): one.version for one in distributions()
    },
}))
"""
