"""``--user``, ``--group``, ``--umask``: the user and group of the workers.

Sockets, pid file and log files are created before the change, by the user who started the server; the
application is imported after it.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.records import record

if TYPE_CHECKING:
    from citius.settings.config import Config


@record(frozen=True, slots=True)
class Identity:
    """User and group by number; -1: unchanged."""

    uid: int
    gid: int
    name: str | None

    @staticmethod
    def of(config: Config) -> Identity:
        """The user and group that the configuration names.

        Raises:
            ConfigError: There is no such user or group.
        """
        import grp
        import pwd

        uid, gid, name = -1, -1, None
        if config.user is not None:
            try:
                by_name = not config.user.isdigit()
                user = pwd.getpwnam(config.user) if by_name else pwd.getpwuid(int(config.user))
                uid, gid, name = user.pw_uid, user.pw_gid, user.pw_name
            except KeyError:
                if not config.user.isdigit():
                    raise ConfigError(f"user: there is no user {config.user!r}") from None
                uid = int(config.user)
                if config.group is None:
                    raise ConfigError(
                        f"user: there is no user with the number {uid}, so its group is not known; "
                        "name one with --group"
                    ) from None
        if config.group is not None:
            try:
                by_name = not config.group.isdigit()
                gid = grp.getgrnam(config.group).gr_gid if by_name else int(config.group)
            except KeyError:
                raise ConfigError(f"group: there is no group {config.group!r}") from None
        return Identity(uid, gid, name)

    def can_write(self, status: os.stat_result) -> bool:
        """Whether the mode bits for the group or for others let it write."""
        groups = [self.gid] if self.name is None else os.getgrouplist(self.name, self.gid)
        if status.st_gid in groups:
            return bool(status.st_mode & stat.S_IWGRP)
        return bool(status.st_mode & stat.S_IWOTH)


def are_split(config: Config) -> bool:
    """Whether root starts the server and the workers run as another user or group."""
    return (config.user is not None or config.group is not None) and os.geteuid() == 0


def drop(config: Config) -> None:
    """Become the configured user and group, irrevocably.

    Raises:
        ConfigError: There is no such user or group, or only root could become it.
    """
    if config.user is None and config.group is None:
        return
    identity = Identity.of(config)
    try:
        if identity.uid not in (-1, os.getuid()) or identity.gid not in (-1, os.getgid()):
            if identity.name is not None:
                os.initgroups(identity.name, identity.gid)
            elif identity.gid != -1:
                os.setgroups([identity.gid])
            if identity.gid != -1:
                os.setgid(identity.gid)
            if identity.uid != -1:
                os.setuid(identity.uid)
            library = os.path.dirname(os.__file__)
            if not os.access(library, os.R_OK | os.X_OK):
                raise ConfigError(
                    f"user/group: {config.user or config.group} cannot read Python's library in "
                    f"{library}; use a Python that all users can read"
                )
    except PermissionError:
        raise ConfigError(
            f"user/group: only root can become {config.user or config.group}; this is uid {os.getuid()}"
        ) from None


def set_umask(config: Config) -> None:
    """Set the mode bits that new files do not get."""
    if config.umask is not None:
        os.umask(int(config.umask, 8))
