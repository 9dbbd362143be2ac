"""Access lines and notices."""

from __future__ import annotations

import logging as standard
import re

import pytest
from citius.observability import logging


@pytest.fixture
def _clean_logger() -> object:
    logger = standard.getLogger("citius")
    before = logger.handlers[:], logger.propagate, logger.level
    logger.handlers.clear()
    logger.propagate = True  # pytest hangs its own handler into loggers that do not propagate
    yield
    logger.handlers[:], logger.propagate, logger.level = before
    logging.configure("info")


@pytest.mark.usefixtures("_clean_logger")
class TestNotices:
    def test_level(self, capsys: pytest.CaptureFixture[str]) -> None:
        logging.configure("warning")
        logging.info("quiet")
        logging.warning("loud")
        text = capsys.readouterr().err
        assert "quiet" not in text
        assert re.fullmatch(r"\S+ \S+ WARN  loud\n", text)

    def test_colours_where_they_are_wanted(self, capsys: pytest.CaptureFixture[str]) -> None:
        logging.configure("info", True)
        logging.warning("loud")
        assert " \x1b[33mWARN \x1b[0m loud\n" in capsys.readouterr().err
        logging.configure("info")  # standard error is no terminal here
        logging.warning("loud")
        assert "\x1b" not in capsys.readouterr().err

    def test_exceptions_come_with_their_traceback(self, capsys: pytest.CaptureFixture[str]) -> None:
        logging.configure("info")
        try:
            raise KeyError("where")
        except KeyError as error:
            logging.log_exception("it failed", error)
        text = capsys.readouterr().err
        assert "ERROR it failed\nTraceback" in text
        assert "KeyError: 'where'" in text

    def test_an_application_may_take_over(self) -> None:
        seen: list[str] = []

        class Keep(standard.Handler):
            def emit(self, record: standard.LogRecord) -> None:
                seen.append(record.getMessage())

        standard.getLogger("citius").addHandler(Keep())
        logging.configure("info")
        logging.error("100 % mine")
        assert seen == ["100 % mine"]
