"""``--log-config``: the standard library's logging, set up from a file.

``.json``, ``.toml`` and ``.yaml`` hold the dictionary of ``logging.config.dictConfig``, anything else the
sections of ``fileConfig``. Notices of the server come through the logger ``citius``, whose handlers and
levels are then the file's (``logging.govern``).
"""

from __future__ import annotations

from typing import Any

from citius.errors import ConfigError
from citius.observability import logging as server_log


def apply(path: str) -> None:
    """Set logging up.

    Raises:
        ConfigError: The file cannot be read, or `logging.config` refuses its content.
    """
    import logging.config

    server_log.prepare().setLevel(logging.NOTSET)
    try:
        if path.endswith((".json", ".toml", ".yaml", ".yml")):
            table = _table(path)
            table.setdefault("disable_existing_loggers", False)
            logging.config.dictConfig(table)
        else:
            logging.config.fileConfig(path, disable_existing_loggers=False)
    except ConfigError:
        raise
    except Exception as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise ConfigError(f"log_config: {path} does not set up logging: {reason}") from None
    server_log.govern()


def _table(path: str) -> dict[str, Any]:
    with open(path, "rb") as file:
        data = file.read()
    if path.endswith(".json"):
        import json

        return json.loads(data)
    if path.endswith(".toml"):
        import tomllib

        return tomllib.loads(data.decode())
    try:
        import yaml  # pyright: ignore
    except ImportError:
        raise ConfigError(
            f"log_config: {path} is YAML, and PyYAML is not installed; install it, or use .json or .toml"
        ) from None
    return yaml.safe_load(data)  # pyright: ignore
