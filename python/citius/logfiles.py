"""``--log-file`` and ``--access-log-file``: standard error and standard output as files.

The files take the place of descriptors 2 and 1, so that tracebacks, stacks printed by a signal and what
libraries write go there too. Opening again (USR1, after a rotation) puts the new file in the same place.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from citius.errors import ConfigError

if TYPE_CHECKING:
    from citius.config import Config


def open_files(config: Config, *, give: bool = True) -> None:
    """Put the configured files, opened now, in the place of the two descriptors.

    Args:
        config: Names the files.
        give: Make them belong to whom the workers run as; those cannot do it themselves.

    Raises:
        ConfigError: A file cannot be opened for writing.
    """
    for option, path, place in (
        ("log_file", config.log_file, 2),
        ("access_log_file", config.access_log_file, 1),
    ):
        if path is None or path == "-":
            continue
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise ConfigError(f"{option}: cannot write to {path}: {reason}") from None
        if give and (config.user is not None or config.group is not None):
            from citius.privileges import Identity

            identity = Identity.of(config)
            os.fchown(fd, identity.uid, identity.gid)
        os.dup2(fd, place)
        os.close(fd)


def reopen(config: Config, *, give: bool = True) -> None:
    """Open them anew, or say why that is not possible and go on with the old ones."""
    try:
        open_files(config, give=give)
    except ConfigError as error:
        from citius import logging

        logging.error(str(error))
