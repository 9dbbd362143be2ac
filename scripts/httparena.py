"""Runs HttpArena's own validation of lab/httparena/citius, with processes in the place of containers.

httparena.py CHECKOUT: a checkout of github.com/MDA2AV/HttpArena. The entry is copied into its `frameworks/`,
a database is seeded by its own script, and its `scripts/validate.sh` runs with a `docker` on PATH that starts
the command of the entry's Dockerfile, with this environment's `citius`, and a PostgreSQL of this machine. The
ports are those that the validation expects: 8080 to 8082, 8443 and 5432 have to be free.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from citius_lab.processes import services

NAME = "citius"
ENTRY = Path(__file__).parents[1] / "lab" / "httparena" / NAME
FOLDER = "HTTPARENA_FOLDER"


def main(checkout: Path) -> int:
    """Validate; return the exit code of the validation."""
    own = checkout / "frameworks" / NAME
    shutil.copytree(ENTRY, own, dirs_exist_ok=True)
    if not (checkout / "data" / "pgdb-seed.sql").exists():
        subprocess.run([sys.executable, str(checkout / "scripts" / "generate-pgdb.py")], check=True)
    with tempfile.TemporaryDirectory(prefix="arena-") as name:
        folder = Path(name)
        docker = folder / "docker"
        docker.write_text(
            f'#!/bin/sh\nexec {shlex.join([sys.executable, __file__])} --docker "$@"\n'
        )
        docker.chmod(0o755)
        path = f"{folder}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = os.environ | {"PATH": path, FOLDER: name, "NO_PROXY": "*"}
        try:
            command = ["bash", str(checkout / "scripts" / "validate.sh"), NAME]
            return subprocess.run(command, cwd=checkout, env=environment, check=False).returncode
        finally:
            for container in folder.glob("*.pid"):
                remove(folder, container.stem)


# --- what the validation asks of docker -------------------------------------


def docker(words: list[str]) -> int:
    """Do what one call of docker asks for."""
    folder = Path(os.environ[FOLDER])
    if words[0] == "run":
        return run(folder, words[1:])
    if words[0] == "exec":
        return subprocess.run(words[2:], env=client(), check=False).returncode
    if words[:2] == ["rm", "-f"]:
        remove(folder, words[2])
    # Nothing is built, and there are no networks.
    return 0


def run(folder: Path, words: list[str]) -> int:
    """Start a container: the server of PostgreSQL, or the entry."""
    name = words[words.index("--name") + 1]
    mounts = dict(reversed(one.split(":")[:2]) for one in values(words, "-v"))
    variables = dict(one.split("=", 1) for one in values(words, "-e"))
    if any(word.startswith("postgres:") for word in words):
        command, variables = database(folder, mounts), {}
    else:
        command, own = entry(mounts)
        variables |= own | {"CACHE_PATH": str(folder / "cache")}
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=ENTRY,
            env=client() | variables,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (folder / f"{name}.pid").write_text(str(process.pid))
    return 0


def values(words: list[str], option: str) -> list[str]:
    """Return what follows each use of an option."""
    return [words[at + 1] for at, word in enumerate(words) if word == option]


def remove(folder: Path, name: str) -> None:
    """End a container with all its processes, and show what it said if that was anything."""
    path = folder / f"{name}.pid"
    if path.exists():
        pid = int(path.read_text())
        path.unlink()
        for number in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(pid, number)
            except ProcessLookupError:
                break
            ended(pid)
        said = (folder / f"{name}.log").read_text(errors="replace")
        if said and name.endswith(NAME):
            sys.stderr.write(said)


def ended(pid: int) -> None:
    """Wait until a process is gone, which may be another one's child, for ten seconds at most."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        select.select([descriptor], [], [], 10)
        os.close(descriptor)


def entry(mounts: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables of the entry's Dockerfile, with paths of this machine."""
    text = (ENTRY / "Dockerfile").read_text().replace("\\\n", "")
    command: list[str] = json.loads(re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)[1])
    variables = dict(
        one.split("=", 1) for one in re.search(r"^ENV (.*)$", text, re.MULTILINE)[1].split()
    )
    return (
        [here(word, mounts) for word in command],
        {name: here(value, mounts) for name, value in variables.items()},
    )


def here(text: str, mounts: dict[str, str]) -> str:
    """Return a path within the container as one of this machine."""
    for inside, outside in mounts.items():
        if text == inside or text.startswith(inside + "/"):
            return outside + text.removeprefix(inside)
    return text


def database(folder: Path, mounts: dict[str, str]) -> list[str]:
    """Make a database cluster; return the command that serves it, and seeds it when it has begun to."""
    data = folder / "data"
    seed = next(path for inside, path in mounts.items() if inside.endswith(".sql"))
    as_user = services.unprivileged()
    if as_user:
        folder.chmod(0o711)
        data.mkdir(mode=0o700)
        shutil.chown(data, services.NOBODY, services.NOGROUP)

    def words(program: str, *options: str) -> list[str]:
        return [*as_user, str(binaries() / program), "-D", str(data), *options]

    initdb = words("initdb", "-U", "bench", "-A", "trust", "-E", "UTF8", "--no-sync")
    subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, cwd="/")
    single = words("postgres")
    single.insert(len(as_user) + 1, "--single")
    statement = b"CREATE DATABASE benchmark;\n"
    subprocess.run(
        [*single, "postgres"], input=statement, check=True, stdout=subprocess.DEVNULL, cwd="/"
    )
    options = [
        "unix_socket_directories=",
        "listen_addresses=127.0.0.1",
        "max_connections=256",
        "fsync=off",
    ]
    serve = words("postgres", *(word for option in options for word in ("-c", option)))
    seeding = f"until psql -q -f {shlex.quote(seed)}; do sleep 0.2; done >/dev/null 2>&1"
    return ["sh", "-c", f"({seeding}) & exec {shlex.join(serve)}"]


def client() -> dict[str, str]:
    """Return the environment in which PostgreSQL's programs find the database."""
    path = f"{binaries()}:{os.environ['PATH']}"
    where = {"PGHOST": "127.0.0.1", "PGPORT": "5432", "PGUSER": "bench", "PGDATABASE": "benchmark"}
    return os.environ | where | {"PATH": path}


def binaries() -> Path:
    """Return the directory of PostgreSQL's programs."""
    found = services.postgresql_binaries()
    if found is None:
        sys.exit("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--docker"]:
        sys.exit(docker(sys.argv[2:]))
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve()))
