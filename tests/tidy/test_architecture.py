"""The crates keep to ARCHITECTURE.md: who may use whom, who may say `unsafe`, what has no I/O."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# An edge that is not here does not exist. ARCHITECTURE.md draws the same picture.
MAY_USE = {
    "citius-http": set(),
    "citius-h1": {"citius-http"},
    "citius-h2": {"citius-http"},
    "citius-qpack": {"citius-http"},
    "citius-h3": {"citius-http", "citius-qpack"},
    "citius-forwarded": {"citius-http"},
    "citius-forms": {"citius-http", "citius-route"},
    "citius-rpc": {"citius-http"},
    "citius-pg": set(),
    "citius-redis": set(),
    "citius-ws": {"citius-http"},
    "citius-route": set(),
    "citius-chan": set(),
    "citius-coroutine": set(),
    "citius-goroutine": {"citius-coroutine"},
    "citius-tls": {"citius-http"},
    "citius-quic": {"citius-http", "citius-tls"},
    "citius-abi": set(),
    "citius-handler": {"citius-abi"},
    "citius-compress": {"citius-http"},
    "citius-observe": {"citius-http", "citius-route"},
    "citius-reactor": {
        "citius-http",
        "citius-h1",
        "citius-h2",
        "citius-h3",
        "citius-rpc",
        "citius-forwarded",
        "citius-compress",
        "citius-observe",
        "citius-tls",
        "citius-quic",
        "citius-ws",
    },
    "citius-static": {"citius-http", "citius-route", "citius-reactor"},
    "citius-sandbox": set(),
    "citius-native": {
        "citius-abi",
        "citius-chan",
        "citius-goroutine",
        "citius-h1",
        "citius-http",
        "citius-reactor",
        "citius-tls",
    },
    "citius-base": {
        "citius-http",
        "citius-route",
        "citius-reactor",
        "citius-observe",
        "citius-chan",
        "citius-goroutine",
        "citius-native",
        "citius-tls",
    },
    "citius-clients": {
        "citius-base",
        "citius-abi",
        "citius-chan",
        "citius-forwarded",
        "citius-h1",
        "citius-h2",
        "citius-http",
        "citius-route",
        "citius-reactor",
        "citius-observe",
        "citius-pg",
        "citius-redis",
        "citius-goroutine",
        "citius-native",
    },
    "citius-py": {
        "citius-base",
        "citius-clients",
        "citius-abi",
        "citius-http",
        "citius-route",
        "citius-reactor",
        "citius-static",
        "citius-observe",
        "citius-rpc",
        "citius-goroutine",
        "citius-native",
        "citius-forms",
        "citius-tls",
        "citius-quic",
        "citius-sandbox",
    },
    "citius-testkit": {
        "citius-http",
        "citius-h1",
        "citius-h2",
        "citius-h3",
        "citius-forms",
        "citius-pg",
        "citius-redis",
    },
}
MAY_TEST_WITH = {"citius-testkit", "citius-chan"}
PROTOCOL_CRATES = [
    "citius-http",
    "citius-h1",
    "citius-h2",
    "citius-qpack",
    "citius-h3",
    "citius-ws",
    "citius-rpc",
    "citius-pg",
    "citius-redis",
    "citius-forms",
    "citius-forwarded",
]
KNOW_PYTHON = {"citius-base", "citius-clients", "citius-py"}
WITH_UNSAFE = KNOW_PYTHON | {
    "citius-abi",
    "citius-native",
    "citius-handler",
    "citius-coroutine",
    "citius-chan",
    "citius-sandbox",
}
# A coroutine that changes its thread can be made by `unsafe` code only, in tests too.
TESTS_WITH_UNSAFE = {"citius-goroutine/tests/common/mod.rs"}


@functools.cache
def packages() -> dict[str, dict[str, set[str]]]:
    """Dependencies among our crates, by kind."""
    done = subprocess.run(
        ["cargo", "metadata", "--no-deps", "--offline", "--format-version=1"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    found: dict[str, dict[str, set[str]]] = {}
    for package in json.loads(done.stdout)["packages"]:
        kinds = found.setdefault(package["name"], {"normal": set(), "dev": set(), "build": set()})
        for dependency in package["dependencies"]:
            if dependency["name"].startswith("citius"):
                kinds[dependency["kind"] or "normal"].add(dependency["name"])
    return found


def sources(crate: str) -> list[Path]:
    return sorted((ROOT / "crates" / crate).rglob("*.rs"))


def test_every_crate_is_in_the_table() -> None:
    assert set(packages()) == set(MAY_USE)
    assert {path.name for path in (ROOT / "crates").iterdir() if path.is_dir()} == set(MAY_USE)


@pytest.mark.parametrize("crate", MAY_USE)
def test_edges(crate: str) -> None:
    uses = packages()[crate]
    assert uses["normal"] | uses["build"] <= MAY_USE[crate]
    assert uses["dev"] <= MAY_USE[crate] | MAY_TEST_WITH


@pytest.mark.parametrize("crate", PROTOCOL_CRATES)
def test_protocol_crates_can_name_no_socket_and_no_clock(crate: str) -> None:
    text = (ROOT / "crates" / crate / "src/lib.rs").read_text()
    assert "#![no_std]" in text
    assert re.search(r"#!\[forbid\([^)]*unsafe_code", text)
    for path in sources(crate):
        if path.name == "tests.rs" or "src" not in path.parts:
            continue
        code = path.read_text().partition("#[cfg(test)]")[0]
        assert not re.search(r"\bstd::", without_comments(code)), f"{path} names std"


@pytest.mark.parametrize("crate", sorted(set(MAY_USE) - WITH_UNSAFE))
def test_unsafe_is_quarantined(crate: str) -> None:
    if crate != "citius-testkit":  # its users' lints are enough for it
        text = (ROOT / "crates" / crate / "src/lib.rs").read_text()
        assert re.search(r"#!\[forbid\([^)]*unsafe_code", text), f"{crate} does not forbid unsafe"
    for path in sources(crate):
        if path.relative_to(ROOT / "crates").as_posix() not in TESTS_WITH_UNSAFE:
            assert not re.search(r"\bunsafe\b", without_comments(path.read_text())), path


def test_the_files_with_unsafe_are_those_that_are_named() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    found = re.search(r"^\| I2 \| (.*?)\. `citius-handler`", text, re.M)
    assert found, "ARCHITECTURE.md lists the files with unsafe"
    for crate in KNOW_PYTHON:
        listed = re.search(rf"`{crate}` in ([^;]*?)(?:, `citius-|$)", found[1])
        assert listed, f"ARCHITECTURE.md lists the files of {crate}"
        named = set(re.findall(r"`([\w/]+(?:\.rs|/))`", listed[1]))
        source = ROOT / "crates" / crate / "src"
        used = {
            path.relative_to(source).as_posix()
            for path in source.rglob("*.rs")
            if re.search(r"\bunsafe\b", without_comments(path.read_text()))
        }
        for name in named:
            assert any(path.startswith(name) for path in used), f"{name} has no unsafe"
        assert {path for path in used if not path.startswith(tuple(named))} == set()


def test_unsafe_says_why() -> None:
    for path in [path for crate in WITH_UNSAFE for path in sources(crate)]:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bunsafe\s*\{", line.partition("//")[0]):
                above = "\n".join(lines[max(0, number - 6) : number])
                assert "SAFETY:" in above, f"{path}:{number + 1} does not say why it is safe"


def test_nothing_below_the_binding_names_python() -> None:
    for crate in set(MAY_USE) - KNOW_PYTHON:
        for path in sources(crate):
            assert not re.search(
                r"\bpyo3\b|\bpython\b", without_comments(path.read_text()), re.I
            ), path


def test_one_file_calls_the_kernel_with_sockets() -> None:
    pattern = re.compile(r"\brustix::net\b|\bquinn_udp\b")
    found = {
        path.relative_to(ROOT / "crates").as_posix()
        for crate in MAY_USE
        for path in sources(crate)
        if "src" in path.parts and pattern.search(without_comments(path.read_text()))
    }
    assert found == {
        "citius-reactor/src/linux/socket.rs",
        "citius-reactor/src/linux/datagram.rs",
    }


def test_two_files_read_and_write_streams() -> None:
    pattern = re.compile(r"\b(?:socket|stream|stream_mut\(\))\.(?:recv|send\w*|discard)\(")
    found = {
        path.relative_to(ROOT / "crates/citius-reactor/src").as_posix()
        for path in sources("citius-reactor")
        if "src" in path.parts and pattern.search(without_comments(path.read_text()))
    }
    # stream.rs says what a stream is; the others are clients' connections and those to other servers.
    assert found == {"conn.rs", "stream.rs", "upstream.rs"}


# Names of files and folders that say for which systems they are.
OF_SYSTEMS = {"linux", "portable", "unix", "windows"}


@pytest.mark.parametrize("crate", sorted(set(MAY_USE) - {"citius-sandbox"}))
def test_only_files_named_after_systems_know_them(crate: str) -> None:
    """Others may choose between such files, and name nothing that one system alone has."""
    specific = re.compile(r"\brustix\b|\bstd::os::|\blibc::")
    for path in sources(crate):
        if "src" not in path.parts or {"tests", *OF_SYSTEMS} & {path.stem, *path.parent.parts}:
            continue
        code = without_comments(path.read_text().partition("#[cfg(test)]")[0])
        # Each line, or what follows an attribute that says for which system it is.
        lines = code.splitlines()
        for number, line in enumerate(lines):
            if specific.search(line):
                above = "\n".join(lines[max(0, number - 3) : number])
                assert "target_os" in above or "cfg(unix)" in above, f"{path}:{number + 1}: {line}"


def test_the_judge_shares_nothing_with_a_contestant() -> None:
    manifest = tomllib.loads((ROOT / "lab/load/Cargo.toml").read_text())
    assert not [name for name in manifest["dependencies"] if name.startswith("citius")]
    assert "workspace" in manifest, "the load generator is a workspace of its own"
    for path in (ROOT / "lab/citius_lab").rglob("*.py"):
        assert not re.search(r"^\s*(?:from|import) citius\b", path.read_text(), re.M), path


def without_comments(code: str) -> str:
    """Code with its comments and the text of its strings blanked, roughly; enough for whole words."""
    code = re.sub(r'"(?:[^"\\\n]|\\[\s\S])*"', '""', code)
    return re.sub(r"//[^\n]*", "", code).replace("unsafe_code", "").replace("unsafe_op", "")


def test_threads_of_the_server_outlive_a_panic() -> None:
    """Threads run code of applications there, and one that a panic ends would leave a gap for good."""
    paths = [path for crate in KNOW_PYTHON | {"citius-native"} for path in sources(crate)]
    starters = [path for path in paths if "thread::Builder" in path.read_text()]
    assert starters, "this test has nothing to look at"
    for path in starters:
        assert "catch_unwind" in path.read_text(), (
            f"{path.name} starts threads and catches no panic"
        )
