"""A connected socket to an origin, perhaps by a proxy."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from citius.http.transport import proxies
from citius.http.transport.addresses import connect_to

if TYPE_CHECKING:
    from citius._core import HttpOrigin
    from citius.http.transport.addresses import Way


async def connect(way: Way, origin: HttpOrigin) -> tuple[socket.socket, str]:
    """A socket that is connected to an origin, perhaps by a proxy, and the address.

    Raises:
        OSError: There is none.
    """
    if origin.unix is not None:
        return await way.home.connect_to(socket.AF_UNIX, origin.unix), origin.unix
    if origin.proxy is not None:
        return await proxies.connect(way, origin)
    return await connect_to(way, origin.host, origin.port, is_target=True)
