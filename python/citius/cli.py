"""The command line: ``citius serve``, ``dev``, ``new``, ``routes``, ``openapi``, ``proto``, ``mcp``.

The options of ``serve`` come from config.py; nothing about them is said here. ``load`` turns into the
bundled load generator, ``lab`` is imported from its own package when it is asked for.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from citius.errors import ConfigError
from citius.settings.config import OPTIONS, Config
from citius.settings.option import LIMITS_GROUP, Option
from citius.settings.sources import Job, Sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius.web.application.app import App

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """The commands; ``lab`` is a package of its own and may be absent."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return ["serve", "dev", "new", "routes", "openapi", "proto", "mcp", "load", "lab"]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    ("serve", "Serve an application."),
                    (
                        "dev",
                        "Serve an application that is being written: reloads, shows tracebacks.",
                    ),
                    ("new", "Make a project."),
                    ("routes", "List what a native application serves."),
                    ("openapi", "Print the OpenAPI document of a native application."),
                    ("proto", "Write .proto files of the procedures of a native application."),
                    ("mcp", "Serve an application's MCP server on standard input and output."),
                    ("load", "Send load to a server and measure its responses."),
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


def _serve(
    target: str | None,
    config_file: str | None,
    print_config: bool,
    check_config: bool,
    **given: Any,
) -> None:
    """Serve TARGET: module:attribute, a module, path/to/file.py, or a Django project.

    Without TARGET the Django project whose manage.py is here.
    """
    wanted: _Wanted | None = click.get_current_context().obj
    if wanted is not None and wanted.refused is not None:
        raise click.UsageError(str(wanted.refused))
    values = {name: value for name, value in given.items() if value is not None and value != ()}
    if config_file is not None and config_file.endswith(".py"):
        from citius.settings.gunicorn import advice

        try:
            text = advice(config_file)
        except ConfigError as error:
            raise click.UsageError(str(error)) from None
        click.echo(f"citius: {text}", err=True, nl=False)
        sys.exit(2)
    try:
        sources = Sources(values, config_file)
        config = sources.read()
        if print_config:
            click.echo(sources.print(), nl=False)
            return
        if target is None:
            target = _in_sight(config)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if check_config:
        from citius.serving.server import check

        sys.exit(check(target, config))
    assert wanted is not None, "`read` has given it"
    wanted.job = Job(target, config, sources)


def _in_sight(config: Config) -> str:
    """The default target: the Django project of the directory."""
    from citius.serving.interfaces import django

    if django.find(None, config.app_dir) is not None:
        return django.MANAGE
    raise ConfigError(
        "no target: say what to serve, as module:attribute or path/to/file.py (and there is no manage.py "
        f"of a Django project in {os.path.abspath(config.app_dir)})"
    )


class _Value(click.ParamType):  # pyright: ignore[reportMissingTypeArgument]
    """An option's own parser, so that all sources accept the same and complain alike."""

    def __init__(self, option: Option, flag: str) -> None:
        self.name = option.kind
        self._option = option
        self._flag = flag

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        option = self._option
        if not isinstance(value, str):
            return value
        try:
            if option.kind == "list":
                return value
            return option.from_flag(value, self._flag)
        except ConfigError as error:
            self.fail(str(error).partition(": ")[2], param, ctx)


def _parameters(option: Option) -> list[click.Option]:
    """An option as click knows it; an alias with another unit is a parameter of its own."""
    default: Any = option.default
    text = option.help
    if default is not None and default != () and option.kind != "bool":
        if isinstance(default, tuple):
            default = ", ".join(map(str, option.default))
        text += f" [{default:g}]" if isinstance(default, float) else f" [{default}]"
    if option.kind == "bool":
        flag = option.flags[0]
        spelling = f"{flag}/--no-{flag[2:]}"
        if default is not None:
            text += f" [{'on' if default else 'off'}]"
        return [click.Option([spelling], default=None, help=text)]
    shown = [flag for flag in option.flags if flag == option.flags[0] or len(flag) == 2]
    is_list = option.kind == "list"
    made = [
        click.Option(
            [option.name, *shown], type=_Value(option, option.flags[0]), help=text, multiple=is_list,
            default=None, metavar=_metavar(option),
        )
    ]  # fmt: skip
    for flag in {**dict.fromkeys(option.flags), **option.scale}:
        if flag not in shown:
            made.append(
                click.Option(
                    [f"{option.name}_alias_{len(made)}", flag], expose_value=False, hidden=True,
                    type=_Value(option, flag), multiple=is_list, default=None,
                    callback=_store(option.name),
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
        if value is not None and value != () and not ctx.params.get(name):
            ctx.params[name] = value

    return store


def _foreign() -> list[click.Option]:
    """Flags of other servers that are no options here: each says what to do instead."""
    from citius.settings.compat import unclaimed

    def told(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is None or value is False or ctx.resilient_parsing:
            return
        from citius.settings.compat import reply

        try:
            text = reply(param.opts[0], value if isinstance(value, str) else None)
        except ConfigError as error:
            raise click.UsageError(str(error)) from None
        click.echo(f"citius: {text}", err=True)

    return [
        click.Option(
            [f"foreign_{index}", *spellings], hidden=True, expose_value=False, callback=told,
            is_flag=not answer.takes_value, default=None,
        )
        for index, (spellings, answer) in enumerate(unclaimed())
    ]  # fmt: skip


class _ServeCommand(click.Command):
    """Options under headings, in the order of config.py."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                option = OPTIONS.get(parameter.name or "")
                group = option.group if option is not None else "Command"
                groups.setdefault(group, []).append(record)
        limits = groups.pop(LIMITS_GROUP, [])
        for group, records in (*groups.items(), (LIMITS_GROUP, limits)):
            with formatter.section(group):
                formatter.write_dl(records, col_max=34)


def _serve_command() -> click.Command:
    parameters: list[click.Parameter] = [
        click.Argument(["target"], required=False),
        click.Option(
            ["config_file", "-c", "--config"], metavar="FILE",
            help="Take the options from this TOML file instead of pyproject.toml.",
        ),
        click.Option(
            ["--print-config"], is_flag=True,
            help="Print every option with its value and where it comes from, as TOML, and exit.",
        ),
        click.Option(
            ["--check-config"], is_flag=True,
            help="Check the options and import the application, and exit: 0 if all is well, else 3.",
        ),
    ]  # fmt: skip
    for option in OPTIONS.values():
        parameters += _parameters(option)
    parameters += _foreign()
    return _ServeCommand(
        "serve",
        params=parameters,
        callback=_serve,
        help=_serve.__doc__,
        context_settings=_CONTEXT,
        epilog="Every option can be given as CITIUS_NAME in the environment and as name in "
        "[tool.citius] of pyproject.toml. The flags of uvicorn, gunicorn and granian are understood; "
        "one that is no option here says what takes its place.",
    )


cli.add_command(_serve_command())


def _native_application(target: str, app_dir: str, factory: bool) -> App:
    """The native application that ``target`` names."""
    from citius.serving.interfaces.imports import import_app
    from citius.serving.prepare import import_failed
    from citius.web.application.app import App

    try:
        app = import_app(target, Config(app_dir=app_dir, factory=factory))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except Exception as error:
        sys.exit(import_failed(target, error))
    if not isinstance(app, App):
        raise click.UsageError(
            f"{target} is no citius.App: there is nothing to be said of its routes"
        )
    return app


def _terminal_columns() -> int | None:
    """How wide the terminal is; ``None`` for files and pipes, whose lines are read by programs."""
    from shutil import get_terminal_size

    return get_terminal_size().columns if sys.stdout.isatty() else None


@cli.command("routes")
@click.argument("target")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the parameters.")
@click.option("--app-dir", default=".", show_default=True, help="Where to look for modules.")
@click.option(
    "--factory", is_flag=True, help="The attribute makes the application when it is called."
)
def routes_command(target: str, as_json: bool, app_dir: str, factory: bool) -> None:
    """List the routes, WebSockets and procedures of TARGET, as `citius serve` takes it."""
    from citius.web.application import listing

    try:
        endpoints = _native_application(target, app_dir, factory).endpoints
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        import json

        click.echo(json.dumps(listing.values(endpoints), indent=2))
        return
    for line in listing.lines(endpoints, _terminal_columns()):
        click.echo(line)


_LAB_IS_MISSING = (
    "the lab and its load generator are not installed: pip install 'citius[lab]' "
    "(in a checkout of Citius: make build)"
)


@cli.command("new")
@click.argument("directory")
@click.option(
    "--db", is_flag=True, help="Items are kept in PostgreSQL, with migrations by Alembic."
)
@click.option("--rpc", is_flag=True, help="Items are a service of Connect and gRPC (connectrpc).")
def new_command(directory: str, db: bool, rpc: bool) -> None:
    """Make a project in DIRECTORY: an application with tests, types and a Dockerfile."""
    from pathlib import Path

    from citius.scaffold import make

    try:
        files = make(Path(directory), has_database=db, has_rpc=rpc)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    readme = os.path.join(directory, "README.md")
    click.echo(f"{len(files)} files in {directory}; {readme} says how to go on")


@cli.command(
    "dev",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def dev_command(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Serve a TARGET that is being written: `citius serve --reload`, with its options.

    With documentation at /docs, tracebacks in the browser, and warnings of handlers that keep the event
    loop's thread.
    """
    serve = cli.commands["serve"]
    with serve.make_context("dev", ["--reload", *arguments], parent=ctx.parent) as inner:
        serve.invoke(inner)


@cli.command("mcp")
@click.argument("target")
@click.option("--path", help="Which MCP server, if the application has several.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME:VALUE",
    help="A field of every request, such as 'Authorization: Bearer …'; may be repeated.",
)
@click.option("--app-dir", default=".", show_default=True, help="Where to look for modules.")
@click.option(
    "--factory", is_flag=True, help="The attribute makes the application when it is called."
)  # fmt: skip
def mcp_command(
    target: str, path: str | None, headers: tuple[str, ...], app_dir: str, factory: bool
) -> None:
    """Serve the MCP server of TARGET on standard input and output, for clients that start it themselves."""
    from citius.mcp.stdio import serve, take_pipes

    fields: list[tuple[str, str]] = []
    for header in headers:
        name, colon, value = header.partition(":")
        if not colon or not name.strip():
            raise click.UsageError(f"--header: expected NAME:VALUE, got {header!r}")
        fields.append((name.strip(), value.strip()))
    pipes = take_pipes()
    try:
        app = _native_application(target, app_dir, factory)
        serve(app, Config(app_dir=app_dir), pipes, path=path, headers=fields)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


@cli.command("openapi")
@click.argument("target")
@click.option("--app-dir", default=".", show_default=True, help="Where to look for modules.")
@click.option(
    "--factory", is_flag=True, help="The attribute makes the application when it is called."
)
def openapi_command(target: str, app_dir: str, factory: bool) -> None:
    """Print the OpenAPI document of TARGET, as `citius serve` takes it."""
    import json

    try:
        made = _native_application(target, app_dir, factory).openapi()
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    click.echo(json.dumps(made, indent=2))


@cli.command("proto")
@click.argument("target")
@click.option("--app-dir", default=".", show_default=True, help="Where to look for modules.")
@click.option(
    "--factory", is_flag=True, help="The attribute makes the application when it is called."
)
@click.option(
    "-o", "--output", "directory", help="The directory for the files; they are printed without one."
)
def proto_command(target: str, app_dir: str, factory: bool, directory: str | None) -> None:
    """Write .proto files of the procedures of TARGET, as `citius serve` takes it.

    They are for clients that call them by Connect with JSON (App.connect).
    """
    from pathlib import Path

    try:
        app = _native_application(target, app_dir, factory)
        from citius.web.routing.rpc.proto import proto_files

        files = proto_files(app)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    if not files:
        raise click.UsageError(f"{target} has no procedures; declare them with @app.rpc")
    for name, text in files.items():
        if directory is None:
            click.echo(f"// {name}\n{text}" if len(files) > 1 else text, nl=False)
            continue
        path = Path(directory, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(path)


@cli.command(
    "load",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def load_command(arguments: tuple[str, ...]) -> None:
    """Send load to a server and measure its responses."""
    from importlib.util import find_spec

    lab = find_spec("citius_lab")
    if lab is None or lab.origin is None:
        raise click.ClickException(_LAB_IS_MISSING)
    binary = os.path.join(os.path.dirname(lab.origin), "bin", "citius-load")
    if not os.access(binary, os.X_OK):
        raise click.ClickException(f"the load generator is not at {binary}; `make build` builds it")
    os.execv(binary, ["citius load", *arguments])


def _lab() -> click.Command:
    try:
        from citius_lab.cli import lab  # pyright: ignore
    except KeyboardInterrupt:  # importing takes a moment
        sys.exit(130)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "citius_lab":
            raise
        raise click.ClickException(_LAB_IS_MISSING) from None
    return lab  # pyright: ignore


class _Wanted:
    """What ``serve`` leaves to the caller of ``read``."""

    def __init__(self, refused: ConfigError | None) -> None:
        self.refused = refused
        self.job: Job | None = None


def read(arguments: Sequence[str] | None, refused: ConfigError | None = None) -> Job:
    """What a command line wants to have served.

    Args:
        arguments: Those of the process if ``None``.
        refused: Why its options cannot be, if that is known.

    Raises:
        SystemExit: It wants something else, which was done, or could not be read.
    """
    wanted = _Wanted(refused)
    try:
        given = None if arguments is None else list(arguments)
        cli.main(args=given, prog_name="citius", obj=wanted)
    except SystemExit:
        if wanted.job is None:
            raise
    assert wanted.job is not None, "only `serve` returns"
    return wanted.job
