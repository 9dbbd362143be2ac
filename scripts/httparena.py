"""Runs HttpArena's own validation of the entries in lab/httparena, with processes in the place of containers.

httparena.py CHECKOUT [ENTRY]: a checkout of github.com/MDA2AV/HttpArena. The entries (`citius` and
`citius-gateway`) are copied into its `frameworks/`, a database is seeded by its own script, and its
`scripts/validate.sh` runs with a `docker` on PATH that starts the commands of their Dockerfiles and compose
files, with this environment's `citius`, and a PostgreSQL of this machine. Profiles that the checkout has and
the board has no more are validated, too. The ports are those that the validation expects: 8080 to 8082, 8443
and 5432 have to be free.
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

import yaml
from citius_lab.processes import services

ENTRIES = Path(__file__).parents[1] / "lab" / "httparena"
NAMES = ("citius", "citius-gateway")
# What `citius` does for profiles that the board had in April 2026.
EARLIER = ("json", "upload", "api-4", "api-16", "static", "crud")
FOLDER = "HTTPARENA_FOLDER"


def main(checkout: Path, names: tuple[str, ...]) -> int:
    """Validate the entries; return the highest exit code of a validation."""
    for name in NAMES:
        shutil.copytree(ENTRIES / name, checkout / "frameworks" / name, dirs_exist_ok=True)
    about = checkout / "frameworks" / "citius" / "meta.json"
    meta = json.loads(about.read_text())
    known = (checkout / "scripts" / "validate.sh").read_text()
    meta["tests"] += [name for name in EARLIER if f'has_test "{name}"' in known]
    about.write_text(json.dumps(meta))
    if not (checkout / "data" / "pgdb-seed.sql").exists():
        subprocess.run([sys.executable, str(checkout / "scripts" / "generate-pgdb.py")], check=True)
    return max(validate(checkout, name) for name in names)


def validate(checkout: Path, entry: str) -> int:
    """Validate one entry; return the exit code of the validation."""
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
            command = ["bash", str(checkout / "scripts" / "validate.sh"), entry]
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
    if words[0] == "compose":
        return compose(folder, words[1:])
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
        command = database(folder, mounts)
        start(folder, name, command, client(), Path("/"))
    else:
        image = ENTRIES / name.removeprefix("httparena-validate-")
        start_image(folder, name, image, mounts, variables)
    return 0


def compose(folder: Path, words: list[str]) -> int:
    """Start the services of a compose file, or end them."""
    path, project = (Path(words[words.index(option) + 1]) for option in ("-f", "-p"))
    for service, how in yaml.safe_load(os.path.expandvars(path.read_text()))["services"].items():
        name = f"{project}-{service}"
        remove(folder, name)
        if "up" not in words:
            continue
        build = how["build"]
        image = path.parent / (build if isinstance(build, str) else build["context"])
        mounts = dict(reversed(one.split(":")[:2]) for one in how["volumes"])
        variables = dict(one.split("=", 1) for one in how.get("environment", ()))
        start_image(folder, name, image, mounts, variables, how.get("command"))
    return 0


def start_image(
    folder: Path,
    name: str,
    image: Path,
    mounts: dict[str, str],
    variables: dict[str, str],
    instead: list[str] | None = None,
) -> None:
    """Start the command of a Dockerfile, or another one in its place."""
    command, own = described(image / "Dockerfile", mounts)
    own["CACHE_PATH"] = str(folder / "cache")
    start(folder, name, instead or command, client() | own | variables, image)


def start(folder: Path, name: str, command: list[str], env: dict[str, str], cwd: Path) -> None:
    """Start a process in a session of its own, and keep its number under a container's name."""
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (folder / f"{name}.pid").write_text(str(process.pid))


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
        if said and "postgres" not in name:
            sys.stderr.write(said)


def ended(pid: int) -> None:
    """Wait until a process is gone, which may be another one's child, for ten seconds at most."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        select.select([descriptor], [], [], 10)
        os.close(descriptor)


def described(dockerfile: Path, mounts: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command and the variables of a Dockerfile, with paths of this machine."""
    text = dockerfile.read_text().replace("\\\n", "")
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
    if len(sys.argv) not in (2, 3) or not set(sys.argv[2:]) <= set(NAMES):
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]).resolve(), tuple(sys.argv[2:]) or NAMES))
