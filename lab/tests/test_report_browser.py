"""The page in a real browser: nothing sticks out, nothing is cut, nothing is asked for elsewhere."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import browser
import pytest
from everything import everything

from citius_lab import analyse, report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def page() -> str:
    results = everything()
    return report.html(results, analyse.analyse(results))


@pytest.mark.parametrize("width", [360, 820, 1400])
def test_fits_a_phone_a_tablet_and_a_desktop(page: str, tmp_path: Path, width: int) -> None:
    seen = browser.look(page, tmp_path, width)
    assert seen["width"] == width
    assert seen["overflow"] == 0
    assert seen["sticksOut"] == []
    assert seen["drawings"] == page.count('role="img"') > 100
    assert seen["empty"] == 0
    assert seen["cut"] == []
    assert seen["touching"] == []
    assert seen["letters"] >= 7.5  # pixels of the smallest print in a plot
    assert seen["requests"] == []
    assert seen["console"] == []


def test_the_probe_sees_what_is_wrong(page: str, tmp_path: Path) -> None:
    wrong = '<p style="width:3000px">wide</p><script>console.error("oh")</script></main>'
    seen = browser.look(page.replace("</main>", wrong), tmp_path, 360)
    assert seen["overflow"] > 400
    assert "P.null wide" in seen["sticksOut"]
    assert len(seen["console"]) == 1


def test_a_picture_of_it_is_not_blank(page: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page)
    picture = browser.screenshot(tmp_path / "report.html", 1300, 1200)
    assert struct.unpack(">II", picture[16:24]) == (1300, 1200)
    (tmp_path / "blank.html").write_text("<!doctype html>")
    assert len(picture) > 10 * len(browser.screenshot(tmp_path / "blank.html", 1300, 1200))
