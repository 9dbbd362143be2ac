"""``citius`` and ``python -m citius``: a command line is read, forgotten, and what it asks for served.

Forgotten, because a worker has no use for the parser and the flags of four servers: their memory is the
application's then. Whatever imports them again gets them again.
"""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius.config import Config
    from citius.sources import Job


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point."""
    is_ours = "click" not in sys.modules
    job = _read(arguments)
    if is_ours:
        _forget()
    sys.exit(_serve(*job))


def _read(arguments: Sequence[str] | None) -> Job:
    # In a function of its own, so that no name holds on to the module.
    from citius.cli import read

    return read(arguments)


def _forget() -> None:
    import citius

    for name in [*sys.modules]:
        if name.partition(".")[0] == "click" or name in ("citius.cli", "citius.compat"):
            del sys.modules[name]
    for name in ("cli", "compat"):
        citius.__dict__.pop(name, None)
    gc.collect()


def _serve(target: str, config: Config, reread: Callable[[], Config]) -> int:
    """Serve, under the reloader if that is wanted."""
    if config.reload:
        from citius.reload import Reloader

        return Reloader(target, config, sys.argv[2:]).run()
    from citius.server import serve

    try:
        return serve(target, config, reread)
    except KeyboardInterrupt:  # while the application was being imported
        return 130


if __name__ == "__main__":
    main()
