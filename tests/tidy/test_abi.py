"""`citius_api` is spelled by the server and by the crate for handlers: both have the same members."""

from __future__ import annotations

import re
from pathlib import Path

CRATES = Path(__file__).parents[2] / "crates"
SERVER = {
    "Api": CRATES / "citius-py/src/gateway/compiled/abi.rs",
    "WaitingApi": CRATES / "citius-py/src/gateway/compiled/abi.rs",
    "RuntimeApi": CRATES / "citius-native/src/api.rs",
    "OutgoingApi": CRATES / "citius-native/src/net/functions.rs",
    "EnginesApi": CRATES / "citius-py/src/native/engines/functions.rs",
}
NUMBERS = {"u16", "u32", "i64", "f64", "usize", "c_int", "Text"}


def members(path: Path, struct: str) -> list[tuple[str, str]]:
    """Names and types of a struct's members."""
    code = re.sub(r"//[^\n]*", "", path.read_text())
    found = re.search(rf"struct {struct} \{{(.*?)\n\}}", code, re.S)
    assert found, f"{path} has {struct}"
    flat = re.sub(r"\s+", " ", found[1])
    parts = re.split(r"(?:^|,) *(?:pub )?(\w+): ", flat)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def plain(kind: str) -> str:
    """A type without the names of what pointers lead to, which each side has its own of."""
    kind = re.sub(r"Option<(\w+)>", r"\1", kind)
    kind = re.sub(r"Option<([^<>]*\))>", r"\1", kind)
    # A function that is passed, and a pointer to a place, are addresses.
    outer, abi, signature = kind.partition("unsafe extern ")
    signature = re.sub(r'unsafe extern "C(?:-unwind)?" fn\([^()]*\)', "address", signature)
    signature = re.sub(r"(?:\*(?:const|mut) )+(?:\w+::)?\w+", "address", signature)
    words = re.findall(r'->|\(|\)|"C(?:-unwind)?"|[\w:]+', outer + abi + signature)
    plain_words = NUMBERS | {"->", "(", ")", "fn", "unsafe", "extern", '"C"', '"C-unwind"'}
    return " ".join(word if word in plain_words else "address" for word in words)


def of_server(struct: str = "Api") -> list[tuple[str, str]]:
    """The members of the server's table, in order, with those of the tables in it."""
    found: list[tuple[str, str]] = []
    for name, kind in members(SERVER[struct], struct):
        nested = kind.rstrip(", ").rpartition("::")[2]
        found += of_server(nested) if nested in SERVER else [(name, plain(kind))]
    return found


def test_both_tables_have_the_same_members() -> None:
    handlers = members(CRATES / "citius-handler/src/raw.rs", "Api")
    assert [(name, plain(kind)) for name, kind in handlers] == of_server()
    assert len(handlers) > 80


def test_a_type_that_differs_is_seen() -> None:
    function = 'unsafe extern "C" fn(*mut Chan, usize, i64) -> c_int'
    assert plain(function) == plain('unsafe extern "C" fn(chan::Pointer, usize, i64) -> c_int')
    assert plain(function) != plain('unsafe extern "C" fn(chan::Pointer, usize) -> c_int')
    assert plain(function) != plain('unsafe extern "C" fn(chan::Pointer, i64, usize) -> c_int')
    assert plain(function) != plain('unsafe extern "C" fn(chan::Pointer, usize, i64)')
    assert plain(function) != plain(function.replace('"C"', '"C-unwind"'))
