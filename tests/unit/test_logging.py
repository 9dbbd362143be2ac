"""Access lines and notices."""

from __future__ import annotations

import logging as standard
import os
import re

import pytest
from citius import logging

RECORD = (("127.0.0.1", 5000), "GET", b"/", "1.1", 200, 9, 104)


def test_an_access_line() -> None:
    assert logging.access_line(RECORD) == '127.0.0.1:5000 - "GET / HTTP/1.1" 200 9B 0.1ms'
    assert logging.access_line((None, *RECORD[1:])).startswith('- - "GET')


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (b"/a\r\n127.0.0.1", r"/a\x0d\x0a127.0.0.1"),
        (b'/"', r"/\x22"),
        (b"/\x1b[2J", r"/\x1b[2J"),
        (b"/\xff", r"/\xff"),
        (b"/a%20b?c=d", "/a%20b?c=d"),
    ],
)
def test_no_target_forges_a_line(target: bytes, shown: str) -> None:
    record = (*RECORD[:2], target, *RECORD[3:])
    assert f'"GET {shown} HTTP/1.1"' in logging.access_line(record)


def test_the_lines_of_a_turn_are_written_at_once() -> None:
    reader, writer = os.pipe()
    try:
        logging.access_writer(writer)([RECORD, RECORD])
        text = os.read(reader, 4096).decode()
    finally:
        os.close(reader)
        os.close(writer)
    pattern = r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} INFO  127\.0\.0\.1:5000 - "GET .*ms'
    assert [bool(re.fullmatch(pattern, line)) for line in text.splitlines()] == [True, True]


def test_a_reader_that_went_away_is_no_exception() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        logging.access_writer(writer)([RECORD])
    finally:
        os.close(writer)


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
