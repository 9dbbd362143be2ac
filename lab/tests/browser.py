"""A headless Chromium that loads a page at a width and says what it sees."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def command() -> str:
    """Return the browser's command; skip the test where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if (found := shutil.which(name)) is not None:
            return found
    pytest.skip("no Chromium here (Debian: chromium)")


def look(page: str, folder: Path, width: int) -> dict[str, Any]:
    """Load a page in a frame of ``width`` pixels; return what the probe in it measured.

    The frame is there because no window is narrower than 500 pixels.
    """
    (folder / "page.html").write_text(with_script(page, PROBE))
    frame = f'<iframe src="page.html" width="{width}" height="900" style="border:0"></iframe>'
    outside = f"<!doctype html><body>{frame}<script>{LISTENER}</script></body>"
    (folder / "frame.html").write_text(outside)
    done = run(folder, "--dump-dom", "--virtual-time-budget=4000", folder / "frame.html")
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found is not None, (done.stdout[-500:], done.stderr[-2000:])
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1])) | {"console": console}


def with_script(page: str, script: str) -> str:
    """Return a page that runs one script more; its policy would not let it."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    return page.replace("</body>", f"<script>{script}</script></body>")


def dom(page: str, folder: Path) -> str:
    """Load a page as it is; return what has become of it."""
    (folder / "alone.html").write_text(page)
    done = run(folder, "--dump-dom", "--virtual-time-budget=4000", folder / "alone.html")
    assert "CONSOLE" not in done.stderr, done.stderr
    return done.stdout


def screenshot(page: Path, width: int, height: int) -> bytes:
    """Return a picture of a page, PNG."""
    target = page.with_suffix(".png")
    run(page.parent, f"--screenshot={target}", f"--window-size={width},{height}", page)
    return target.read_bytes()


def run(folder: Path, *words: object) -> subprocess.CompletedProcess[str]:
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
             "--disable-background-networking", "--enable-logging=stderr",
             f"--user-data-dir={folder / 'profile'}"]  # fmt: skip
    return subprocess.run(
        [command(), *flags, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=50,
        check=True,
    )


LISTENER = """
addEventListener("message", (event) => { document.body.dataset.seen = event.data; });
"""

# Reports: what sticks out of the page, plots without drawings, words that are cut or touch in plots.
PROBE = """
addEventListener("load", () => {
  for (const one of document.querySelectorAll("details")) one.open = true;
  const root = document.documentElement;
  const name = (one) => one.tagName + "." + one.getAttribute("class") + " " +
    one.textContent.slice(0, 30);
  const sticksOut = [...document.querySelectorAll("body *")].filter((one) =>
    !one.closest(".wide, nav") && one.getBoundingClientRect().width > 0 &&
    one.getBoundingClientRect().right > root.clientWidth + 1).map(name);
  const drawings = [...document.querySelectorAll("figure svg")];
  const cut = [], touching = [];
  let letters = 100;
  for (const drawing of drawings) {
    const box = drawing.getBoundingClientRect();
    const words = [...drawing.querySelectorAll("text")].map((one) => [one, one.getBoundingClientRect()]);
    letters = Math.min(letters, box.width / drawing.viewBox.baseVal.width * 10.5);
    for (const [one, place] of words)
      if (place.left < box.left - 1 || place.right > box.right + 1) cut.push(name(one));
    words.forEach(([one, a], at) => words.slice(at + 1).forEach(([other, b]) => {
      if (a.left < b.right && b.left < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom)
        touching.push(name(one) + " | " + name(other));
    }));
  }
  const empty = drawings.filter((one) => one.getBoundingClientRect().height < 20 ||
    !one.querySelector(".mark, .cross")).length;
  parent.postMessage(JSON.stringify({
    overflow: root.scrollWidth - root.clientWidth, sticksOut, drawings: drawings.length, empty,
    cut, touching, letters, width: root.clientWidth,
    requests: performance.getEntriesByType("resource").map((one) => one.name),
  }), "*");
});
"""
