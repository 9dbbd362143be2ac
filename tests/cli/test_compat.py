"""Command lines of other servers: every flag is known, and nothing is dropped silently."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from citius.cli import cli
from citius.errors import ConfigError
from citius.settings import compat, gunicorn
from citius.settings.config import OPTIONS
from citius.settings.loading import load
from rig import citius


def parse(*arguments: str) -> dict[str, object]:
    """What click makes of a command line, the callback left out."""
    command = cli.get_command(click.Context(cli), "serve")
    assert command is not None
    return command.make_context("serve", ["x:app", *arguments]).params


EVERY = sorted({(flag, server) for server, flags in compat.FLAGS.items() for flag in flags.split()})


@pytest.mark.parametrize(("flag", "server"), EVERY)
def test_every_flag_is_an_option_or_answered(flag: str, server: str, capsys) -> None:
    known = compat.accepted()
    if flag in known:
        option = next((o for o in OPTIONS.values() if known[flag] in o.flags), None)
        if option is None or option.kind == "bool":
            return
        value = {"int": "1", "float": "1", "list": "x"}.get(option.kind, "x")
        if option.choices:
            value = option.choices[0]
        assert parse(flag, value)[option.name] is not None
        return
    answer = compat.REPLIES[flag]
    arguments = (flag, "x") if answer.takes_value else (flag,)
    if not answer.goes_on or flag == "--worker-class":
        with pytest.raises(click.UsageError, match=flag):
            parse(*arguments)
    else:
        parse(*arguments)
        assert answer.says in capsys.readouterr().err


def test_no_answer_is_for_a_flag_nobody_has() -> None:
    flags = {flag for flags in compat.FLAGS.values() for flag in flags.split()}
    assert set(compat.REPLIES) <= flags | {"--no-ws"}


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["--timeout-keep-alive", "5"], {"keep_alive_ms": 5000}),
        (["--keep-alive", "0.5"], {"keep_alive_ms": 500}),
        (["--workers-max-rss", "512"], {"worker_rss_bytes_max": 512 << 20}),
        (["--worker-rss-max", "2G"], {"worker_rss_bytes_max": 2 << 30}),
        (["--reload-tick", "50"], {"reload_delay_s": 0.05}),
        (["-w", "3", "-b", ":1", "-b", "unix:/x"], {"workers": 3, "bind": (":1", "unix:/x")}),
        (["-t", "30", "-u", "me"], {"worker_timeout_s": 30.0, "user": "me"}),
        (["-g", "us", "-m", "27"], {"group": "us", "umask": "27"}),
        (["--limit-max-requests", "7", "--max-requests-jitter", "2"], {"max_requests": 7}),
        (["--error-logfile", "a", "--access-logfile", "b"], {"log_file": "a", "access_log_file": "b"}),
    ],
)  # fmt: skip
def test_aliases_keep_their_units(arguments: list[str], values: dict[str, object]) -> None:
    params = parse(*arguments)
    assert {name: params[name] for name in values} == values


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("uvicorn.workers.UvicornWorker", "not needed: the interface"),
        ("sync", "not needed"),
        ("gthread", "--threads N"),
    ],
)
def test_worker_classes_that_are_not_needed(kind: str, says: str, capsys) -> None:
    parse("-k", kind)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["eventlet", "tornado", "my.Worker"])
def test_worker_classes_that_cannot_be(kind: str) -> None:
    with pytest.raises(click.UsageError, match=f"--worker-class {kind}"):
        parse("-k", kind)


def test_a_configuration_of_gunicorns_is_read_and_not_run(tmp_path: Path) -> None:
    path = tmp_path / "gunicorn.conf.py"
    path.write_text(
        "import os\nos._exit(9)\nbind = '0.0.0.0:80'\nworkers = os.cpu_count()\ntimeout = 60\n"
        "keepalive = 5\nraw_env = ['A=b']\numask = 0o27\npreload_app = True\n"
        "worker_class = 'uvicorn.workers.UvicornWorker'\ndef post_fork(server, worker): ...\n"
    )
    done = citius("serve", "shop:app", "-c", str(path))
    assert done.returncode == 2
    toml, _, notes = done.stderr.partition("\n# ")
    toml = toml.partition("be:\n")[2]
    assert "# workers = ...  (was: os.cpu_count())" in done.stderr
    assert "worker_class: not needed: the interface" in notes + done.stderr
    assert "post_fork: use app.on_startup" in done.stderr
    (tmp_path / "pyproject.toml").write_text(
        "\n".join(line for line in done.stderr.splitlines()[1:] if not line.startswith("#"))
    )
    config = load({"app_dir": str(tmp_path)}, {})
    assert (config.bind, config.env, config.umask) == (("0.0.0.0:80",), ("A=b",), "027")
    assert (config.worker_timeout_s, config.limits) == (60, {"keep_alive_ms": 5000})


def test_a_configuration_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="cannot read nothing.py"):
        gunicorn.advice("nothing.py")
