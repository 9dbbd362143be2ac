"""The code of other frameworks in docs/migration/frameworks.md runs as the page shows it."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/migration/frameworks.md"
BLOCKS = re.findall(r"^```py\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def framework_of(block: str) -> str:
    return re.findall(r"^from (fastapi|flask|starlette|blacksheep|japronto)", block, re.M)[0]


@pytest.mark.parametrize("block", BLOCKS, ids=map(framework_of, BLOCKS))
def test_a_block_runs(block: str, tmp_path: Path) -> None:
    if find_spec(framework_of(block)) is None:
        pytest.skip("it does not build for this Python")
    ended = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
