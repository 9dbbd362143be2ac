"""How connections of a pool are secured; files are read once, when the first connection needs them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from citius._core import ClientTls
from citius.process.authorities import system_authorities

if TYPE_CHECKING:
    from citius._core import HttpOrigin

_loaded: dict[tuple[object, ...], ClientTls] = {}
_LOADED_MAX = 16


class TlsFailed(ConnectionError):
    """A connection cannot be secured as it is configured."""

    kind = "TlsError"


class Rules:
    """What a pool says about TLS."""

    def __init__(
        self, verify: bool | str, cert: tuple[str, ...] | None, pins: tuple[str, ...], h2: str
    ) -> None:
        self._verify, self._cert, self._pins = verify, cert, pins
        self._protocols = {"auto": ("h2", "http/1.1"), "prior": ("h2",)}.get(h2, ("http/1.1",))
        self._own: ClientTls | None = None

    def load(self, origin: HttpOrigin) -> ClientTls:
        """The rules, read from files at the first time.

        Raises:
            TlsFailed: A file cannot be used.
        """
        del origin
        if self._own is not None:
            return self._own
        authorities = _authorities(self._verify)
        key = (self._verify is False, authorities, self._cert, self._pins, self._protocols)
        found = _loaded.get(key)
        if found is None:
            try:
                found = self._read(authorities)
            except (ValueError, OSError) as error:
                raise TlsFailed(str(error)) from None
            while len(_loaded) >= _LOADED_MAX:
                _loaded.pop(next(iter(_loaded)))
            _loaded[key] = found
        self._own = found
        return found

    def _read(self, authorities: str | None) -> ClientTls:
        cert = self._cert
        identity = None
        if cert is not None:
            certificate, *key = cert
            identity = certificate, key[0] if key else certificate
        return ClientTls(
            "off" if self._verify is False else "web",
            authorities=[authorities] if authorities is not None else [],
            identity=identity,
            password=cert[2] if cert is not None and len(cert) > 2 else None,
            protocols=list(self._protocols),
            pins=[_digest(pin) for pin in self._pins],
        )


def _digest(pin: str) -> bytes:
    """A SHA-256 as curl and RFC 7469 write it (``sha256//…`` in base64), or in hexadecimal digits."""
    text = pin.removeprefix("sha256//").removeprefix("sha256/")
    digest = bytes.fromhex(text) if len(text) == 64 else base64.b64decode(text, validate=True)
    if len(digest) != 32:
        raise ValueError(f"{pin!r} is no SHA-256")
    return digest


def _authorities(verify: bool | str) -> str | None:
    if verify is False:
        return None
    if isinstance(verify, str):
        return verify
    return system_authorities()
