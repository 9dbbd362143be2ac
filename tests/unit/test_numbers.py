"""Numbers in paths and queries are read the same by every kind of handler, and as msgspec reads them."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest
from citius import App
from citius._core import read_integer, read_real
from citius.testing import Client

TEXTS = ["5", "+5", "-5", "007", "-007", "0", "-0", "00", "1e3", "1E3", "1e+3", "1e-3", "10e-1", "1e400",
         "-1e400", "1e-400", "5.0", "5.5", ".5", "5.", "1e", "1_0", " 5", "5 ", "", "+", "-", "--5", "0x10",
         "\u0663", "5\x00", "inf", "-inf", "+inf", "nan", "-nan", "NaN", "Infinity", "INFINITY", "infin",
         "true", "9" * 18, "9" * 19, "9" * 400, "9223372036854775807", "9223372036854775808",
         "-9223372036854775808", "-9223372036854775809", "18446744073709551616", "9007199254740993.0",
         "9007199254740992e0", "1e15", "1e16", "1e18", "1.7976931348623157e308", "1.8e308", "5e-324",
         "0.1", "123456789.123456789", "1.50e1", "0e0", "0e5", "-0.0"]  # fmt: skip


def generated(count: int) -> list[str]:
    """Numerals, and what is nearly one."""
    dice = random.Random(7)
    parts = ["", "0", "1", "5", "00", "12", "9999999999999999", "4294967296"]
    texts: list[str] = []
    for _ in range(count):
        text = dice.choice(["", "", "-", "+"]) + dice.choice(parts)
        if dice.random() < 0.4:
            text += "." + dice.choice(parts)
        if dice.random() < 0.4:
            text += (
                dice.choice("eE")
                + dice.choice(["", "", "-", "+"])
                + dice.choice(["", "0", "2", "17", "310"])
            )
        if dice.random() < 0.1:
            text = text.replace(dice.choice(text or "x"), dice.choice([" ", "x", ".", "-"]), 1)
        texts.append(text)
    return texts


def by_msgspec(text: str, kind: type) -> Any:
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        return None


def without_zeros(text: str) -> str:
    """The zeros that a number begins with, and that JSON has no place for, left out."""
    sign = "-" * text.startswith("-")
    digits = text.removeprefix("-")
    rest = digits.lstrip("0")
    return sign + (rest if rest[:1].isdigit() else "0" + rest) if digits[:1] == "0" else text


@pytest.mark.parametrize("texts", [TEXTS, generated(30_000)], ids=["chosen", "generated"])
def test_numbers_are_those_of_msgspec(texts: list[str]) -> None:
    integers = reals = 0
    for text in texts:
        integer, real = read_integer(text), read_real(text)
        expected = by_msgspec(without_zeros(text), int)
        if expected is not None and -(2**63) <= expected < 2**63:
            assert integer == expected, text
            integers += 1
        elif integer is not None:
            assert (integer, float(text)) == (0, 0.0), text  # of -0.0 msgspec makes no int
        expected = by_msgspec(without_zeros(text), float)
        if expected is not None and not math.isfinite(expected):
            expected = None
        assert (real is None) == (expected is None), text
        if real is not None:
            assert real == expected, text
            reals += 1
    assert 10 < integers < reals < len(texts) - 10


def answers(app: App, paths: list[str], **options: Any) -> list[tuple[int, str]]:
    client = Client(app, **options)
    return [(reply.status_code, reply.text) for reply in (client.get(path) for path in paths)]


def typed(compiled: bool) -> App:
    app = App()
    options: dict[str, Any] = {"compiled": True} if compiled else {}

    @app.get("/int", **options)
    def whole(n: int):
        return n

    @app.get("/float", **options)
    def real(n: float):
        return n + 0.5

    @app.get("/int/{n}", **options)
    def whole_in_path(n: int):
        return n

    return app


@pytest.mark.parametrize("is_interpreted", [True, False], ids=["interpreted", "compiled"])
def test_native_and_compiled_handlers_read_the_same(is_interpreted: bool) -> None:
    if not is_interpreted:
        pytest.importorskip("citius.web.execution.numba_handlers")
    from urllib.parse import quote

    texts = [text for text in TEXTS if "n" not in text.lower() and text != ""]  # JSON has no NaN
    paths = [f"/{kind}?n={quote(text)}" for text in texts for kind in ("int", "float")]
    paths += [f"/int/{quote(text)}" for text in texts if "/" not in text]
    native = answers(typed(compiled=False), paths)
    made = answers(typed(compiled=True), paths, interpret_compiled=is_interpreted)
    for path, (status, text), (made_status, made_text) in zip(paths, native, made, strict=True):
        is_long = status == 200 and "float" not in path and not -(2**63) <= int(text) < 2**63
        assert made_status == (422 if is_long else status), path
        assert made_status != 200 or float(made_text) == float(text), path
