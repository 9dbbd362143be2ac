"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., object])


def budget(help: str, *aliases: str) -> Callable[[Command], Command]:
    """Return ``--budget SECONDS``, ``None`` where it is not given."""
    kind = click.FloatRange(1)
    return click.option("--budget", *aliases, "budget_s", type=kind, metavar="SECONDS", help=help)


def only(help: str) -> Callable[[Command], Command]:
    """Return ``--only NAME,…``, which ``split_names`` reads."""
    return click.option("--only", "names", multiple=True, metavar="NAME,…", help=help)


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
folder = click.argument("folder", type=FOLDER)
out = click.option("--out", type=click.Path(path_type=Path), help="Result folder, new or empty.")
baseline = click.option("--baseline", help="What ratios refer to.")
seed = click.option("--seed", type=int, help="Seed of the order and of the random inputs.")
