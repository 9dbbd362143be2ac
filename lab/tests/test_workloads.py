from __future__ import annotations

import gzip
import json
import random
from typing import Any

import pytest

from citius_lab.definitions.workloads import Response, WrongResponse, contract


def code(name: str) -> Any:
    return contract().workloads[name].code


CASES = contract().cases
RECORDS = code("transfer-data").records()
classify = code("classify").classify
million_loop = code("million-loop").million_loop


def answer(body: bytes, content_type: str = "text/plain", *, status: int = 200) -> Response:
    return Response(status, content_type, body, elapsed_s=0.01)


def test_the_array_has_the_sizes_of_the_contract() -> None:
    lengths = [len(json.dumps(RECORDS, separators=(",", ":"))), len(json.dumps(RECORDS))]
    assert lengths == [133_632, 145_631]
    assert contract().workloads["encode-json"].expect.numbers == tuple(lengths)


@pytest.mark.parametrize(("seed", "total"), [(1, 1_226_562_503_321), (7, 1_257_811_499_940)])
def test_the_loop_ends_where_the_contract_says(seed: int, total: int) -> None:
    assert million_loop(seed) == total


def test_the_branch_of_the_loop_is_taken_about_half_of_the_time() -> None:
    every_time_and_never = 1 + 2 * 499_999_500_000, 1 + 3 * 499_999_500_000
    assert million_loop(1) == pytest.approx(sum(every_time_and_never) / 2, rel=0.05)


def test_the_article_s_path_has_the_article_s_answer() -> None:
    assert list(classify(b"/classify/helloworld").values()) == [5, 10, 10, 10, 11]
    assert len(HELLOWORLD) == 83


@pytest.mark.parametrize(
    ("case", "length"), [("classify-0", 1), ("classify-10", 11), ("classify-100", 101)]
)
def test_classified_paths_have_the_lengths_of_the_article(case: str, length: int) -> None:
    assert classify(CASES[case].target.encode())["total"] == length


HELLOWORLD = (
    b"navytux.spb.ru:\t5\nwww.nexedi.com:\t10\nlab.nexedi.com:\t10\nwww.erp5.com:\t10\ntotal:\t11\n"
)


def test_compressed_answers_are_checked_as_far_as_packages_are_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compressed = code("arena-json-comp")
    assert compressed.decompressed(gzip.compress(b"{}")) == b"{}"
    assert compressed.decompressed(compressed.brotli.compress(b"{}")) == b"{}"
    for wrong in (b"{}", gzip.compress(b"{}")[:-4]):
        with pytest.raises(WrongResponse, match="expected gzip or brotli"):
            compressed.decompressed(wrong)
    monkeypatch.setattr(compressed, "brotli", None)
    assert compressed.decompressed(gzip.compress(b"{}")) == b"{}"
    with pytest.raises(WrongResponse, match="without brotli: pip install"):
        compressed.decompressed(b"{}")


RIGHT = {
    "hello": answer(b"Welcome!\n"),
    "parse-msgpack": answer(b"1000"),
    "encode-json": answer(b"145631"),
    "transfer-data": answer(json.dumps(RECORDS).encode(), "application/json"),
    "million-loop": answer(b"1226562503321"),
    "async": answer(b"OK"),
    "fibonacci": answer(b"OK"),
    "parse-msgpack-varied": answer(b"1000"),
    "classify-10": answer(HELLOWORLD),
    "classify-channel-10": answer(HELLOWORLD),
    "fan-out": answer(b"385"),
}


@pytest.mark.parametrize("case", RIGHT)
def test_accepts_the_right_answer(case: str) -> None:
    CASES[case].check(RIGHT[case])


WRONG = {
    "hello": [answer(b"Welcome!"), answer(b"Welcome!\n", "text/html")],
    "parse-msgpack": [answer(b"999"), answer(b"many")],
    "encode-json": [answer(b"133891")],
    "transfer-data": [
        answer(b"[]", "application/json"),
        answer(b"{", "application/json"),
        answer(json.dumps(RECORDS).encode()),
        answer(json.dumps(RECORDS).replace("999", "998").encode(), "application/json"),
    ],
    "million-loop": [answer(b"1499998500001")],
    "async": [Response(200, "text/plain", b"OK", elapsed_s=0.0001)],
    "fibonacci": [answer(b"?")],
    "classify-10": [
        answer(HELLOWORLD.replace(b"5", b"6")),
        answer(HELLOWORLD.replace(b"www.", b"")),
        answer(b"total:\t11\n"),
    ],
    "classify-channel-10": [answer(HELLOWORLD.replace(b"5", b"6"))],
    "fan-out": [answer(b"384"), answer(b"many")],
}


@pytest.mark.parametrize(
    ("case", "wrong"), [(case, wrong) for case, answers in WRONG.items() for wrong in answers]
)
def test_refuses_a_wrong_answer(case: str, wrong: Response) -> None:
    with pytest.raises(WrongResponse):
        CASES[case].check(wrong)


@pytest.mark.parametrize("case", RIGHT)
def test_refuses_another_status(case: str) -> None:
    with pytest.raises(WrongResponse, match="expected status 200, got 500"):
        CASES[case].check(answer(RIGHT[case].body, RIGHT[case].content_type, status=500))


def test_a_probe_with_random_input_has_its_own_golden_answer() -> None:
    case = CASES["million-loop"]
    target = case.probe(random.Random(4))
    seed = int(target.partition("=")[2])
    assert seed != 1
    case.check(answer(str(million_loop(seed)).encode()), target)
    with pytest.raises(WrongResponse):
        case.check(RIGHT["million-loop"], target)


def test_probes_and_equal_work_of_a_classification_over_a_channel_are_its_own() -> None:
    """They have its path, and the counts of what follows it."""
    case, chosen = CASES["classify-channel-10"], random.Random(4)
    for target in (case.probe(chosen), case.equal_work(chosen)):
        assert target is not None
        assert target.startswith("/classify-channel/")
        assert target != case.target
        counts = classify(target.replace("-channel", "", 1).encode())
        lines = "".join(f"{name}:\t{count}\n" for name, count in counts.items())
        case.check(answer(lines.encode()), target)
        with pytest.raises(WrongResponse):
            case.check(answer(lines.replace(":\t", ":\t1").encode()), target)
