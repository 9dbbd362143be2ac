"""What an application declares, and what its server offers. Tests: tests/http3/test_webtransport.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.serving.bind import has_http3
from citius.serving.interfaces.wsgi import WsgiApp
from citius.web.application.app import App
from citius.web.application.gateway import session_of

if TYPE_CHECKING:
    from citius.serving.interfaces import Application
    from citius.settings.config import Config


def check_sessions(app: Application, config: Config) -> None:
    """Check that WebTransport sessions are served where they are declared, and the other way around.

    Raises:
        ConfigError: It is otherwise.
    """
    if isinstance(app, App) and (where := session_of(app)) and not has_http3(config):
        raise ConfigError(
            f"{where} is called for WebTransport sessions, and no address serves HTTP/3; give --http 1,2,3 "
            "with ssl_certfile and ssl_keyfile, or with ssl_dev"
        )
    if config.webtransport and isinstance(app, (App, WsgiApp)):
        raise ConfigError(
            "webtransport is for ASGI applications; a native one declares its sessions with "
            "@app.webtransport(path)"
        )
