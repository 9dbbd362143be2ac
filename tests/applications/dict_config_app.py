"""Configures logging as most applications do: existing loggers are disabled by default."""

import logging
import logging.config
import os

from citius import App, Request

logging.config.dictConfig(
    {
        "version": 1,
        "formatters": {"line": {"format": "APPLICATION %(name)s %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
    }
)
if os.environ.get("OWN_HANDLER"):
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("OWN %(message)s"))
    logging.getLogger("citius").addHandler(handler)

app = App()


@app.get("/")
def pid(request: Request) -> str:
    return str(os.getpid())


@app.get("/fail")
def fail(request: Request) -> str:
    logging.getLogger("shop").info("sold")
    raise RuntimeError("failed on purpose")
