"""The command line: ``citius serve``, ``citius load``, ``citius lab``.

The options of ``serve`` come from config.py; nothing about them is said here. ``load`` turns into the
bundled load generator, ``lab`` is imported from its own package when it is asked for.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from citius.config import OPTIONS, Config, Option, load
from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """The three commands; ``lab`` is a package of its own and may be absent."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["serve", "load", "lab"]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    ("serve", "Serve an application."),
                    ("load", "Send load to a server and measure the answers."),
                    ("lab", "Measure servers side by side, and report."),
                ]
            )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name == "lab":
            return _lab()
        return super().get_command(ctx, cmd_name)


def _print_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from citius._core import __version__

        click.echo(f"citius {__version__}")
        ctx.exit()


@click.group(cls=_Commands, context_settings=_CONTEXT)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version,
    help="Show the version and exit.",
)  # fmt: skip
def cli() -> None:
    """Citius: a Python web server with a Rust core, and the lab that measures it."""


def _serve(target: str | None, bind: str | None, **given: Any) -> None:
    """Serve TARGET: module:attribute, a module, or path/to/file.py."""
    values = {name: value for name, value in given.items() if value is not None and value != ()}
    try:
        if bind is not None:
            values = {**_bind_values(bind), **values}
        config = load(values, os.environ)
        if target is None:
            raise ConfigError(
                "no target: say what to serve, as module:attribute or path/to/file.py"
            )
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    sys.exit(run(target, config))


def run(target: str, config: Config) -> int:
    """Serve, under the reloader if that is wanted."""
    if config.reload:
        from citius.reload import Reloader

        return Reloader(target, config, sys.argv[2:]).run()
    from citius.server import serve

    try:
        return serve(target, config)
    except KeyboardInterrupt:  # while the application was being imported
        return 130


def _bind_values(bind: str) -> dict[str, Any]:
    """Gunicorn's ``-b``: ``host:port``, ``:port``, ``host``, ``unix:path``, ``fd://N``."""
    if bind.startswith("unix:"):
        return {"uds": bind.removeprefix("unix:")}
    if bind.startswith("fd://"):
        return {"fd": OPTIONS["fd"].parse(bind.removeprefix("fd://"), "--bind")}
    host, colon, port = bind.rpartition(":")
    if not colon or bind.endswith("]"):
        host, port = bind, ""
    values: dict[str, Any] = {"host": host.strip("[]") or "0.0.0.0"}  # as gunicorn
    if port:
        values["port"] = OPTIONS["port"].parse(port, "--bind")
    return values


class _Value(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """An option's own parser, so that all sources accept the same and complain alike."""

    def __init__(self, option: Option, scale: float = 1) -> None:
        self.name = option.kind
        self._option = option
        self._scale = scale

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        option = self._option
        if not isinstance(value, str):
            return value
        try:
            if option.kind == "list":
                return value
            if self._scale != 1:
                return option.check(int(float(value) * self._scale), option.flags[0])
            return option.parse(value, option.flags[0])
        except (ConfigError, ValueError) as error:
            text = str(error).partition(": ")[2] or f"expected {option.expected}, got {value!r}"
            self.fail(text, param, ctx)


def _parameters(option: Option) -> list[click.Option]:
    """An option as click knows it; an alias with another unit is a parameter of its own."""
    default = option.default
    text = option.help
    if default is not None and default != () and option.kind != "bool":
        text += f" [{default:g}]" if isinstance(default, float) else f" [{default}]"
    if option.kind == "bool":
        flag = option.flags[0]
        spelling = f"{flag}/--no-{flag[2:]}"
        text += f" [{'on' if default else 'off'}]"
        return [click.Option([spelling], default=None, help=text)]
    own = [flag for flag in option.flags if option.scale.get(flag, 1) == 1]
    made = [
        click.Option(
            [option.name, *own], type=_Value(option), help=text, multiple=option.kind == "list",
            default=None, metavar=_metavar(option),
        )
    ]  # fmt: skip
    for flag, factor in option.scale.items():
        if factor != 1:
            made.append(
                click.Option(
                    [f"{option.name}_alias_{len(made)}", flag], type=_Value(option, factor),
                    expose_value=False, callback=_store(option.name), hidden=True,
                )
            )  # fmt: skip
    return made


def _metavar(option: Option) -> str:
    """What stands for the value in the help: choices, unit, or kind."""
    if option.choices:
        return f"[{'|'.join(option.choices)}]"
    if option.unit:
        return option.unit.upper().replace(" PER ", "/")
    return {"int": "NUMBER", "float": "NUMBER"}.get(option.kind, "TEXT")


def _store(name: str) -> Any:
    """An alias fills the option it stands for, unless that is given too."""

    def store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is not None and ctx.params.get(name) is None:
            ctx.params[name] = value

    return store


def _serve_command() -> click.Command:
    parameters: list[click.Parameter] = [
        click.Argument(["target"], required=False),
        click.Option(["-b", "--bind"], help="Gunicorn's spelling: HOST:PORT, unix:PATH or fd://N."),
    ]
    for option in OPTIONS.values():
        parameters += _parameters(option)
    return click.Command(
        "serve",
        params=parameters,
        callback=_serve,
        help=_serve.__doc__,
        context_settings=_CONTEXT,
        epilog="Every option can be given as CITIUS_NAME in the environment and as name in "
        "[tool.citius] of pyproject.toml.",
    )


cli.add_command(_serve_command())


@cli.command(
    "load",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def load_command(arguments: tuple[str, ...]) -> None:
    """Send load to a server and measure the answers."""
    binary = os.path.join(os.path.dirname(__file__), "bin", "citius-load")
    if not os.access(binary, os.X_OK):
        raise click.ClickException(
            f"the load generator is not at {binary}; in a checkout `make build` puts it there, "
            "and the wheels for Linux bring it along"
        )
    os.execv(binary, ["citius load", *arguments])


def _lab() -> click.Command:
    try:
        from citius_lab.cli import lab  # pyright: ignore
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "citius_lab":
            raise
        raise click.ClickException(
            "the lab is not installed; in a checkout of Citius `make build` does it, elsewhere "
            "`pip install -e lab` from one"
        ) from None
    return lab  # pyright: ignore


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of ``citius`` and ``python -m citius``."""
    cli.main(args=None if arguments is None else list(arguments), prog_name="citius")
