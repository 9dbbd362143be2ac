"""`citius.h` and the crate `citius-abi` have the same structs: members in order, each with the same types.

That the server and `citius-handler` use the crate's is the compiler's matter.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEADER = (ROOT / "python/citius/include/citius.h").read_text()
CRATE = (ROOT / "crates/citius-abi/src/lib.rs").read_text()
STRUCTS = {
    "text": "Text",
    "value": "Value",
    "pg_value": "PgValue",
    "bytes": "Bytes",
    "case": "Case",
    "tls": "Tls",
    "field": "Field",
    "http_request": "HttpRequest",
    "request": "Request",
    "response": "Response",
    "api": "Api",
}
# Tables in the table; a struct of the header has their members themselves.
NESTED = {"RuntimeApi", "OutgoingApi", "EnginesApi"}
# `yield` is a word of Rust's.
RENAMED = {"yield_now": "yield"}
C_TYPES = {
    "int": "c_int",
    "size_t": "usize",
    "int32_t": "i32",
    "uint32_t": "u32",
    "int64_t": "i64",
    "double": "f64",
    "unsigned short": "u16",
    "void": "",
    "citius_text": "Text",
    "citius_value": "Value",
}

Member = tuple[str, str]


def split(text: str) -> list[str]:
    """Parts between commas that are in no brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "(<[") - (character in ")>]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def of_c(declaration: str) -> Member:
    """Name and type of a member or of an argument."""
    function = re.fullmatch(r"(.*?)\(\*(\w+)\)\((.*)\)", declaration, re.S)
    if function:
        returned, name, arguments = function.groups()
        kinds = [] if arguments == "void" else [of_argument(one) for one in split(arguments)]
        return name, f"({', '.join(kinds)}) -> {of_c(f'{returned.strip()} it')[1]}"
    kind, name = re.split(r"[ *]+(?=\w+$)", declaration)
    return name, "address" if "*" in declaration else C_TYPES[kind.removeprefix("const ")]


def of_argument(declaration: str) -> str:
    # A function that is passed, and an object that has no name in the header, are addresses.
    return "address" if "(*" in declaration else of_c(declaration)[1]


def of_header(name: str) -> list[Member]:
    """The members of ``citius_<name>``."""
    code = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.S)
    found = re.search(rf"(?:struct|union) citius_{name} \{{(.*?)\n\}}", code, re.S)
    assert found, f"citius.h has citius_{name}"
    return [of_c(re.sub(r"\s+", " ", one).strip()) for one in found[1].split(";") if one.strip()]


def of_rust(kind: str) -> str:
    kind = kind.strip()
    function = re.fullmatch(r'unsafe extern "C(?:-unwind)?" fn\((.*?)\)(?: -> (.*))?', kind, re.S)
    if function:
        kinds = [of_rust(one) for one in split(function[1])]
        return f"({', '.join(kinds)}) -> {of_rust(function[2]) if function[2] else ''}"
    return "address" if kind.startswith(("*", "Option<")) else kind


def of_crate(name: str) -> list[Member]:
    """The members of a struct of the crate, with those of the tables in it."""
    code = re.sub(r"//[^\n]*", "", CRATE)
    found = re.search(rf"pub (?:struct|union) {name}(?:<[^>]*>)? \{{(.*?)\n\}}", code, re.S)
    assert found, f"citius-abi has {name}"
    members: list[Member] = []
    for one in re.split(r"(?:^|,)\s*pub ", re.sub(r"\s+", " ", found[1]))[1:]:
        member, kind = one.rstrip(", ").split(": ", 1)
        kind = re.sub(r"\( ", "(", re.sub(r",? \)", ")", kind))
        if (table := kind.partition("<")[0]) in NESTED:
            members += of_crate(table)
        else:
            members.append((RENAMED.get(member, member), of_rust(kind)))
    return members


@pytest.mark.parametrize(("c", "rust"), STRUCTS.items())
def test_a_struct_is_the_header_s(c: str, rust: str) -> None:
    assert of_crate(rust) == of_header(c)


def test_all_of_the_table_is_compared() -> None:
    assert len(of_crate("Api")) > 80


@pytest.mark.parametrize("what", ["ABI_VERSION", "ABI_MINOR"])
def test_versions_are_the_header_s(what: str) -> None:
    header = re.search(rf"#define CITIUS_{what} (\d+)", HEADER)
    crate = re.search(rf"pub const {what.removeprefix('ABI_')}: u32 = (\d+);", CRATE)
    assert header
    assert crate
    assert header[1] == crate[1]


def test_a_type_that_differs_is_seen() -> None:
    declaration = (
        "int (*send)(citius_chan *chan, const void *value, size_t size, int64_t timeout_ns)"
    )
    right = 'unsafe extern "C" fn(*const O::Chan, *const c_void, usize, i64) -> c_int'
    assert of_c(declaration) == ("send", of_rust(right))
    for wrong in (
        "usize, usize) -> c_int",
        "i64, usize) -> c_int",
        "usize) -> c_int",
        "usize, i64)",
    ):
        assert of_c(declaration)[1] != of_rust(right.replace("usize, i64) -> c_int", wrong))
