"""``--env-file`` against python-dotenv, which uvicorn reads its file with: the same variables."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from citius.errors import ConfigError
from citius.settings.envfile import with_files
from dotenv.main import DotEnv

PIECES = (
    "A", "B", "C.d", "e-f", "=", " = ", "=", "'", '"', "\\", "\\n", "\\'", '\\"', "\n", "\n", "\r\n", " ",
    "\t", "#", " # ", "export ", "${A}", "${B:-x y}", "${C.d}", "${OUTER}", "${}", "$A", "1", "ü", "x",
)  # fmt: skip
"""What files are put together from."""
LINES = (
    "A=b", " A = b c ", "export A=b", "A=", "A", "A='b # c'", 'A="b # c" # d', "A='it\\'s'", 'A="\\tb\\d\\""',
    "A=b # c", "A=b#c", "A= # c", "A=#c", "A='one\ntwo'", 'A="one\ntwo"', "A=${OUTER}", "A='${OUTER}'",
    'A="${NO:-d}"', "A=1\nB=${A}2", "B=${A}\nA=1", "A=1\nA=${A}2", "OUTER=1\nA=${OUTER}", "'A'=b", "1A=b",
    "A.b-c=d", "A=$OUTER", "A=${OUTER", "A=a'b'", "A=b\r\nB=c\r\n",
)  # fmt: skip


def ours(path: Path) -> dict[str, str]:
    environ = {"OUTER": "from outside"}
    environ = with_files(environ, [str(path)])
    return environ


def theirs(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """As `load_dotenv` has it: what is in the environment wins."""
    for name in set(os.environ) - {"OUTER"}:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OUTER", "from outside")
    found = DotEnv(path, override=False, encoding="utf-8").dict()
    return {**{k: v for k, v in found.items() if v is not None}, "OUTER": "from outside"}


@pytest.mark.parametrize("text", LINES)
def test_a_file_means_what_it_means_to_python_dotenv(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "env"
    path.write_bytes(text.encode())
    assert ours(path) == theirs(path, monkeypatch)


def test_generated_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dice, path, compared = random.Random(7), tmp_path / "env", 0
    for _ in range(3_000):
        text = "".join(dice.choices(PIECES, k=dice.randrange(1, 9)))
        path.write_bytes(text.encode())
        try:
            seen = ours(path)
        except ConfigError:
            continue  # python-dotenv warns of such lines, and leaves them out
        compared += 1
        assert seen == theirs(path, monkeypatch), text
    assert compared > 500
