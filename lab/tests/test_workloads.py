from __future__ import annotations

import json
import random

import pytest

from citius_lab import workloads
from citius_lab.workloads import CASE_BY_ID, Answer, WrongAnswer


def plain_loop(seed: int) -> int:
    """The contract's words, literally."""
    total = seed
    for i in range(1_000_000):
        total += i * 3
        if total % 7 == 0:
            total -= i
    return total


def answer(body: bytes, content_type: str = "text/plain", *, status: int = 200) -> Answer:
    return Answer(status, content_type, body, elapsed_s=0.01)


def test_the_array_has_the_sizes_of_the_contract() -> None:
    assert sorted(workloads.array_lengths()) == [133_891, 145_890]


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 7, 10, 999_999_937])
def test_the_loop_on_residues_is_the_loop_of_the_contract(seed: int) -> None:
    assert workloads.million_loop(seed) == plain_loop(seed)


def test_the_loop_from_one_ends_where_the_contract_says() -> None:
    assert workloads.million_loop(1) == 1_499_998_500_001


def test_some_seed_takes_the_branch() -> None:
    assert workloads.million_loop(3) != 3 + 1_499_998_500_000


def test_classify_counts_the_prefix_too() -> None:
    assert workloads.classify(b"/classify/") == {
        "navytux.spb.ru": 7,
        "nexedi.com": 7,
        "lab.nexedi.com": 8,
        "erp5.com": 7,
        "total": 10,
    }


@pytest.mark.parametrize(
    ("case", "length"), [("classify-0", 10), ("classify-10", 20), ("classify-100", 110)]
)
def test_classify_paths_have_the_lengths_of_the_contract(case: str, length: int) -> None:
    assert len(CASE_BY_ID[case].target) == length


RIGHT = {
    "hello": answer(b"Welcome!\n"),
    "parse-msgpack": answer(b"1000"),
    "encode-json": answer(b"145890"),
    "transfer-data": answer(json.dumps(workloads.records()).encode(), "application/json"),
    "million-loop": answer(b"1499998500001"),
    "async": answer(b"OK"),
    "fibonacci": answer(b"OK"),
    "classify-0": answer(
        b"navytux.spb.ru:\t7\nnexedi.com:\t7\nlab.nexedi.com:\t8\nerp5.com:\t7\ntotal:\t10\n"
    ),
}


@pytest.mark.parametrize("case", RIGHT)
def test_accepts_the_right_answer(case: str) -> None:
    CASE_BY_ID[case].check(RIGHT[case])


WRONG = {
    "hello": [answer(b"Welcome!"), answer(b"Welcome!\n", "text/html")],
    "parse-msgpack": [answer(b"999"), answer(b"many")],
    "encode-json": [answer(b"133890")],
    "transfer-data": [
        answer(b"[]", "application/json"),
        answer(b"{", "application/json"),
        answer(json.dumps(workloads.records()).encode()),
        answer(json.dumps(workloads.records()).replace("999", "998").encode(), "application/json"),
    ],
    "million-loop": [answer(b"1499998500002")],
    "async": [Answer(200, "text/plain", b"OK", elapsed_s=0.0001)],
    "fibonacci": [answer(b"?")],
    "classify-0": [answer(RIGHT["classify-0"].body.replace(b"8", b"9")), answer(b"total:\t10\n")],
}


@pytest.mark.parametrize(
    ("case", "wrong"), [(case, wrong) for case, answers in WRONG.items() for wrong in answers]
)
def test_refuses_a_wrong_answer(case: str, wrong: Answer) -> None:
    with pytest.raises(WrongAnswer):
        CASE_BY_ID[case].check(wrong)


@pytest.mark.parametrize("case", RIGHT)
def test_refuses_another_status(case: str) -> None:
    with pytest.raises(WrongAnswer, match="expected status 200, got 500"):
        CASE_BY_ID[case].check(answer(RIGHT[case].body, RIGHT[case].content_type, status=500))


def test_a_probe_with_random_input_has_its_own_golden_answer() -> None:
    case = CASE_BY_ID["million-loop"]
    target = case.probe(random.Random(4))
    seed = int(target.partition("=")[2])
    assert seed != 1
    case.check(answer(str(plain_loop(seed)).encode()), target)
    with pytest.raises(WrongAnswer):
        case.check(RIGHT["million-loop"], target)
