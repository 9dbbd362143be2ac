"""Reads a ``gunicorn.conf.py``, which is not run, and says what its settings and hooks are here.

Tests: ``tests/cli/test_compat.py``.
"""

from __future__ import annotations

import ast
from typing import Final

from citius.errors import ConfigError
from citius.settings.compat import REPLIES, accepted
from citius.settings.config import OPTIONS
from citius.settings.sources import toml


def advice(path: str) -> str:
    """The option that each setting of a ``gunicorn.conf.py`` stands for. The file is read, not run.

    Raises:
        ConfigError: It cannot be read.
    """
    try:
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError) as error:
        raise ConfigError(f"--config: cannot read {path}: {error}") from None
    lines = [
        f"{path} is a configuration of gunicorn's. In pyproject.toml it would be:",
        "",
        "[tool.citius]",
    ]
    notes: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            _advise(node.targets[0].id, node.value, lines, notes)
        elif isinstance(node, ast.FunctionDef):
            notes.append(f"{node.name}: {HOOKS.get(node.name, 'no hook of that name here')}")
    return "\n".join(lines + ([""] + [f"# {note}" for note in notes] if notes else [])) + "\n"


def _advise(name: str, value: ast.expr, lines: list[str], notes: list[str]) -> None:
    flag = SETTINGS.get(name, "--" + name.replace("_", "-"))
    own = accepted().get(flag)
    option = next((o for o in OPTIONS.values() if own in o.flags), None)
    if option is None:
        if name == "wsgi_app":
            notes.append(f"wsgi_app: citius serve {ast.unparse(value)}")
        elif flag in REPLIES:
            notes.append(f"{name}: {REPLIES[flag].says}")
        elif not name.startswith("_") and name in SETTINGS:
            notes.append(f"{name}: nothing of that kind here")
        return
    try:
        said = ast.literal_eval(value)
        if option.kind == "list" and isinstance(said, str):
            said = [said]
        if option.name == "umask" and isinstance(said, int):
            said = f"{said:03o}"
        if option.kind == "str" and isinstance(said, int):
            said = str(said)
        if isinstance(said, (int, float)) and not isinstance(said, bool):
            value_here = option.from_flag(said, flag)
        else:
            value_here = option.check(said, name)
        if value_here != option.default or not _is_zero(said):
            lines.append(f"{option.name} = {toml(value_here)}")
    except ConfigError as error:
        lines.append(f"# {option.name} = ...  (was: {ast.unparse(value)}; {error})")
    except ValueError:
        lines.append(f"# {option.name} = ...  (was: {ast.unparse(value)})")


def _is_zero(said: object) -> bool:
    """Whether it is a 0, which may mean what is here the default."""
    return isinstance(said, (int, float)) and not isinstance(said, bool) and said == 0


SETTINGS: Final[dict[str, str]] = {
    "worker_class": "--worker-class", "keepalive": "--keep-alive", "preload_app": "--preload",
    "raw_env": "--env", "pidfile": "--pid", "loglevel": "--log-level", "errorlog": "--log-file",
    "accesslog": "--access-logfile", "access_log_format": "--access-logformat",
    "logconfig": "--log-config", "logconfig_dict": "--log-config", "proc_name": "--name",
    "syslog": "--log-syslog", "limit_request_field_size": "--limit-request-field_size",
    "reload_extra_files": "--reload-extra-file", "wsgi_app": "", "secure_scheme_headers": "",
    "tmp_upload_dir": "",
}  # fmt: skip
"""Settings of gunicorn's that are not called like their flags."""

HOOKS: Final[dict[str, str]] = {
    "on_starting": "runs in no supervisor here; use ExecStartPre= or an entry point",
    "when_ready": "use systemd's Type=notify, or app.on_startup",
    "on_reload": "app.on_startup runs in every new worker",
    "pre_fork": "the supervisor runs no code of the application's",
    "post_fork": "use app.on_startup or lifespan: it runs in every worker",
    "post_worker_init": "use app.on_startup or lifespan: it runs in every worker",
    "worker_int": "use app.on_shutdown or lifespan",
    "worker_abort": "a hung worker prints its stacks by itself",
    "worker_exit": "use app.on_shutdown or lifespan",
    "child_exit": "nothing to clean up: there are no metric files of dead workers",
    "pre_request": "use middleware",
    "post_request": "use middleware",
    "on_exit": "use ExecStopPost= or a wrapper",
    "nworkers_changed": "nothing of that kind here",
    "pre_exec": "nothing of that kind here",
    "ssl_context": "the --ssl-* options say all there is to say",
}
"""What takes the place of gunicorn's hooks."""
