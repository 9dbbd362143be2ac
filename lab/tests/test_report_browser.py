"""The page in a real browser: nothing sticks out, nothing is cut, nothing is asked for elsewhere."""

from __future__ import annotations

import html
import json
import re
import struct
from typing import TYPE_CHECKING

import browser
import pytest
from everything import everything

from citius_lab.judge import analyse
from citius_lab.report import page as report

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


def test_a_table_is_sorted_by_the_heading_that_is_clicked(page: str, tmp_path: Path) -> None:
    """Least first, then most first, then as it was; what has no value is last."""
    seen = browser.dom(browser.with_script(page, CLICKS), tmp_path)
    orders = json.loads(html.unescape(re.search(r'data-orders="([^"]*)"', seen)[1]))
    before, up, down, after = orders
    values = [float(value) for value in up if value]
    assert len(values) > 3
    assert values == sorted(values)
    assert [float(value) for value in down if value] == values[::-1]
    assert up[len(values) :] == down[len(values) :] == [""] * (len(up) - len(values))
    assert before == after


def test_only_its_own_script_runs(page: str, tmp_path: Path) -> None:
    seen = browser.dom(page, tmp_path)
    assert '<th scope="col"><button type="button">contestant</button></th>' in seen
    hostile = page.replace("</body>", "<script>document.title = 'oh'</script></body>")
    with pytest.raises(AssertionError, match="Content Security Policy"):
        browser.dom(hostile, tmp_path)


CLICKS = """
const table = [...document.querySelectorAll("table.sortable")].find((one) => one.rows.length > 5);
const column = 5;
const order = () => [...table.tBodies[0].rows].map((row) => row.cells[column].dataset.sort ?? "");
const orders = [order()];
for (let i = 0; i < 3; i++) {
  table.tHead.rows[0].cells[column].firstElementChild.click();
  orders.push(order());
}
document.body.dataset.orders = JSON.stringify(orders);
"""


def test_a_picture_of_it_is_not_blank(page: str, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(page)
    picture = browser.screenshot(tmp_path / "report.html", 1300, 1200)
    assert struct.unpack(">II", picture[16:24]) == (1300, 1200)
    (tmp_path / "blank.html").write_text("<!doctype html>")
    assert len(picture) > 10 * len(browser.screenshot(tmp_path / "blank.html", 1300, 1200))
