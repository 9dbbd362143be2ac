"""The checker of what clients have seen finds each fault that it is there for."""

from __future__ import annotations

import pytest
from history import Seen, check

SENT = {"a": 3, "b": 1}
RIGHT = ["a 0", "b 0", "a 1", "a 2"]


def seen(*texts: str, ids: str = "12345678") -> Seen:
    made = Seen("client")
    for identifier, text in zip(ids, texts, strict=False):
        made.add(identifier, text)
    return made


def test_what_is_right_passes_and_is_counted() -> None:
    again = seen(*RIGHT[:2], "b 0", *RIGHT[2:], ids="12234")
    again.resumes = 1
    assert check(SENT, [seen(*RIGHT), again]) == {
        "messages": 4, "deliveries": 8, "duplicates": 1, "resumes": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["a 0", "b 0", "a 2"], "has not seen 1"),
        ([], "has not seen 4"),
        ([*RIGHT, "c 0"], "was not sent"),
        ([*RIGHT, "a 3"], "was not sent"),
        ([*RIGHT, "a 2"], "twice under two identifiers"),
        (["a 1", "b 0", "a 0", "a 2"], "a's are out of order"),
    ],
)
def test_each_fault_of_one_client_is_found(texts: list[str], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        check(SENT, [seen(*RIGHT), seen(*texts)], is_one_order=False)


def test_two_orders_of_one_room_are_found() -> None:
    two = [seen(*RIGHT), seen("b 0", "a 0", "a 1", "a 2")]
    with pytest.raises(AssertionError, match="2 orders"):
        check(SENT, two)
    check(SENT, two, is_one_order=False)
