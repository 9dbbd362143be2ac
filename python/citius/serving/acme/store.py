"""The files of ``--acme``: who owns them, who may read them, and what is in them.

::

    accounts/            of the server's user alone: account keys, what is known of each certificate
    certificates/        NAME.pem: key and chain, of the workers' user, mode 0600
    challenges/          NAME.pem: answers by TLS, while a challenge is open; likewise
    http-01/             TOKEN: answers by HTTP, while a challenge is open
    lock                 one process asks authorities at a time
    writing              one process writes at a time: servers that share the directory may start at once

Workers read and do not write here. A file is written beside its place and renamed, so that a reader finds all
of it, and a key and its certificate change together. Root writes only in directories that it alone can
change.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from citius._core import Tls, self_signed_certificate
from citius.errors import ConfigError
from citius.process import paths
from citius.process.privileges import Identity, are_split
from citius.records import record
from citius.settings.config import ACME_SHARED

if TYPE_CHECKING:
    from collections.abc import Generator

    from citius.settings.config import Config


@record(frozen=True, slots=True)
class Store:
    """The directory of ``--acme-dir``."""

    root: str
    uid: int = -1
    """The user of the workers, who read certificates; -1: that of this process."""
    gid: int = -1

    @staticmethod
    def of(config: Config) -> Store:
        """The store that a configuration names.

        Raises:
            ConfigError: There is no such user.
        """
        root = config.acme_root
        if not are_split(config):
            return Store(root)
        identity = Identity.of(config)
        return Store(root, identity.uid, identity.gid)

    @property
    def challenges(self) -> str:
        """Where workers find what answers challenges by TLS."""
        return os.path.join(self.root, "challenges")

    @property
    def http(self) -> str:
        """Where workers find what answers challenges by HTTP."""
        return os.path.join(self.root, "http-01")

    @property
    def accounts(self) -> Path:
        """Where only the server's user reads."""
        return Path(self.root, "accounts")

    def certificate(self, name: str) -> str:
        """The file with the key and the certificates of a name."""
        return os.path.join(self.root, "certificates", f"{name}.pem")

    def prepare(self, config: Config) -> None:
        """Make the directories, and a certificate for each name that has none.

        Raises:
            ConfigError: They cannot be made, or the workers' user could change them.
        """
        if self.uid != -1 and (place := paths.changeable(self.root, Identity.of(config))):
            raise ConfigError(
                f"acme_dir: the workers' user can change {place}, and with it what root writes to "
                f"{self.root}; name a directory that only root can change"
            )
        try:
            os.makedirs(self.root, mode=0o711, exist_ok=True)
            os.makedirs(self.accounts, mode=0o700, exist_ok=True)
            os.chmod(self.accounts, 0o700)
            for name in ACME_SHARED:
                os.makedirs(os.path.join(self.root, name), exist_ok=True)
                os.chmod(os.path.join(self.root, name), 0o711)
            for name in config.acme:
                self._keep_one(name)
        except OSError as error:
            raise ConfigError(
                f"acme_dir: cannot keep certificates in {self.root}: {paths.reason(error)}"
            ) from None
        if self.uid != -1 and (place := self._closed_to_workers()):
            raise ConfigError(
                f"acme_dir: the workers' user cannot enter {place}, and has to read renewed certificates; "
                "name a directory below one that all users may enter, such as /var/lib"
            )

    def _keep_one(self, name: str) -> None:
        """Have a certificate that can be used, and that the workers' user can read."""
        path = self.certificate(name)
        with self._writing():
            try:
                Tls([(path, path)])
            except ValueError:
                self._write(path, self_signed_certificate(name).encode(), 0o600)
                return
        os.chmod(path, 0o600)
        os.chown(path, self.uid if self.uid != -1 else os.geteuid(), self.gid)

    def _closed_to_workers(self) -> str | None:
        for place in (Path(self.root), *Path(self.root).parents):
            status = place.stat()
            is_own = status.st_uid == self.uid and status.st_mode & stat.S_IXUSR
            in_group = status.st_gid == self.gid and status.st_mode & stat.S_IXGRP
            if not (is_own or in_group or status.st_mode & stat.S_IXOTH):
                return str(place)
        return None

    def write(self, path: str, content: bytes, mode: int, *, shared: bool = True) -> None:
        """Put a file in its place, whole, for the workers' user if it is ``shared``.

        Raises:
            OSError: It cannot be written.
        """
        with self._writing():
            self._write(path, content, mode, shared=shared)

    @contextmanager
    def _writing(self) -> Generator[None]:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(os.path.join(self.root, "writing"), flags, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    def _write(self, path: str, content: bytes, mode: int, *, shared: bool = True) -> None:
        beside = f"{path}.new"
        with suppress(FileNotFoundError):
            os.unlink(beside)
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            os.fchmod(fd, mode)
            if shared and self.uid != -1:
                os.fchown(fd, self.uid, self.gid)
            file.flush()
            os.fsync(fd)
        os.rename(beside, path)

    def clear_challenges(self) -> None:
        """Remove answers that a process has left which did not come to its end."""
        for directory in (self.challenges, self.http):
            for entry in list(os.scandir(directory)):
                os.unlink(entry.path)

    @contextmanager
    def locked(self) -> Generator[bool]:
        """Whether no other process asks authorities for these names; none does until the end."""
        fd = os.open(os.path.join(self.root, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield True
        except BlockingIOError:
            yield False
        finally:
            os.close(fd)


def binding_of(config: Config) -> tuple[str, str] | None:
    """Key identifier and key of ``acme_eab``.

    Raises:
        ConfigError: The file cannot be read, has something else, or can be read by others.
    """
    if config.acme_eab is None:
        return None
    try:
        with open(config.acme_eab, encoding="utf-8") as file:
            status, lines = os.fstat(file.fileno()), file.read(4096).split()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"acme_eab: cannot read {config.acme_eab}: {error}") from None
    if status.st_mode & 0o077:
        raise ConfigError(
            f"acme_eab: others than its owner may use {config.acme_eab}; chmod 600 {config.acme_eab}"
        )
    if len(lines) != 2 or not re.fullmatch(r"[A-Za-z0-9_-]{16,}={0,2}", lines[1]):
        raise ConfigError(
            f"acme_eab: expected a key identifier and a key in base64url in {config.acme_eab}, one a line"
        )
    return lines[0], lines[1].rstrip("=")


def prepare(config: Config) -> None:
    """Have the store of a configuration, and the package that fetches certificates.

    Raises:
        ConfigError: One of them is missing.
    """
    if find_spec("acme") is None:
        raise ConfigError(
            "acme: the package that speaks ACME is missing; pip install 'citius[acme]'"
        )
    binding_of(config)
    Store.of(config).prepare(config)
