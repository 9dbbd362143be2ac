"""Options: sources and their order, and what a wrong value is told."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from citius._core import LIMITS
from citius.errors import ConfigError
from citius.settings.config import OPTIONS, Config
from citius.settings.loading import load, make, of_kubernetes, unknown_variables


def test_defaults() -> None:
    config = load({}, {})
    assert config == Config()
    assert (config.host, config.port, config.workers, config.loop) == ("127.0.0.1", 8000, 1, "auto")


def test_every_limit_is_an_option_with_help() -> None:
    for name, default in LIMITS.items():
        option = OPTIONS[name]
        assert option.default == default
        assert option.unit, f"{name} has no unit in config.py"
        assert option.flags[0] == "--" + name.replace("_", "-")
    assert {name for name, option in OPTIONS.items() if option.is_limit} == set(LIMITS)


def test_every_field_is_an_option() -> None:
    assert {f.name for f in dataclasses.fields(Config)} - {"limits"} == {
        name for name, option in OPTIONS.items() if not option.is_limit
    }


def test_no_flag_or_variable_means_two_things() -> None:
    flags = [flag for option in OPTIONS.values() for flag in {*option.flags, *option.scale}]
    assert len(flags) == len(set(flags))
    variables = [variable for option in OPTIONS.values() for variable in option.env]
    assert len(variables) == len(set(variables))


def test_precedence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.citius]\nport = 1\nworkers = 1\nhost = "file"\nhead-bytes-max = 100\n'
    )
    environ = {"CITIUS_PORT": "2", "CITIUS_WORKERS": "2"}
    config = load({"port": 3, "app_dir": str(tmp_path)}, environ)
    assert (config.port, config.workers, config.host) == (3, 2, "file")
    assert config.limits == {"head_bytes_max": 100}


def test_reload_is_for_one_whose_file_describes_the_deployment(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.citius]\nworkers = 4\nsandbox = true\nport = 1\n"
    )
    config = load({"reload": True, "app_dir": str(tmp_path)}, {"WEB_CONCURRENCY": "3"})
    assert (config.workers, config.sandbox, config.port) == (1, False, 1)
    with pytest.raises(ConfigError, match="reload and workers contradict each other"):
        load({"reload": True, "workers": 2}, {})
    with pytest.raises(ConfigError, match="reload and workers contradict each other"):
        load({}, {"CITIUS_RELOAD": "1", "WEB_CONCURRENCY": "3"})


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ({"bind": ("h:1",)}, {"CITIUS_UDS": "u", "CITIUS_FD": "9"}, (("h:1",), None, None)),
        ({"uds": "u"}, {"CITIUS_BIND": "h:1"}, ((), "u", None)),
        ({"port": 7}, {"CITIUS_BIND": "h:1"}, ((), None, None)),
        ({}, {"CITIUS_HOST": "::1"}, ((), None, None)),
        ({}, {"CITIUS_BIND": "h:1"}, (("h:1",), None, None)),
        ({"workers": 2}, {}, ((), "of-file", None)),
    ],
)  # fmt: skip
def test_an_address_sets_aside_those_of_lower_sources(
    tmp_path: Path, given: dict[str, Any], environ: dict[str, str], expected: tuple[Any, ...]
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.citius]\nuds = "of-file"\n')
    config = load({**given, "app_dir": str(tmp_path)}, environ)
    assert (config.bind, config.uds, config.fd) == expected


def test_an_option_that_a_file_has_twice(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        "[tool.citius]\naccess-log = false\naccess_log = true\n"
    )
    with pytest.raises(
        ConfigError, match="has both access-log and access_log, which are one option"
    ):
        load({"app_dir": str(tmp_path)}, {})


@pytest.mark.parametrize(
    ("variable", "value", "end"),
    [
        ("CITIUS_DRAIN_S", "inf", "at most 100000000, got inf"),
        ("CITIUS_WORKER_TIMEOUT_S", "1e10", "at most 100000000, got 10000000000.0"),
        ("CITIUS_BACKLOG", "4294967296", "from 1 to 2147483647, got 4294967296"),
        ("CITIUS_FD", "4294967296", "from 0 to 2147483647, got 4294967296"),
        ("CITIUS_COMPILED_QUEUE_MAX", "9" * 30, f"at least 0, got {'9' * 30}"),
        ("CITIUS_KEEP_ALIVE_MS", "9" * 30, f"at least 0, got {'9' * 30}"),
    ],
)  # fmt: skip
def test_numbers_that_nothing_can_hold(variable: str, value: str, end: str) -> None:
    with pytest.raises(ConfigError, match=f"^{variable}: expected a .*{end}$"):
        load({}, {variable: value})


def test_web_concurrency_and_its_better_name() -> None:
    assert load({}, {"WEB_CONCURRENCY": "3"}).workers == 3
    assert load({}, {"WEB_CONCURRENCY": "3", "CITIUS_WORKERS": "4"}).workers == 4
    assert load({}, {"WEB_CONCURRENCY": ""}).workers == 1


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("yes", True), ("Off", False), ("false", False)]
)
def test_booleans(text: str, value: bool) -> None:
    assert load({}, {"CITIUS_ACCESS_LOG": text}).access_log is value


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        (
            {"CITIUS_PORT": "eighty"},
            "CITIUS_PORT: expected a whole number from 0 to 65535, got 'eighty'",
        ),
        ({"CITIUS_PORT": "70000"}, "CITIUS_PORT: expected a whole number from 0 to 65535, got 70000"),
        (
            {"CITIUS_LOOP": "trio"},
            "CITIUS_LOOP: expected one of auto, uvloop, asyncio, gevent, none, got 'trio'",
        ),
        ({"WEB_CONCURRENCY": "0"}, "WEB_CONCURRENCY: expected a whole number from 1 to 1024, or auto, got 0"),
        ({"CITIUS_RELOAD": "maybe"}, "CITIUS_RELOAD: expected true or false, got 'maybe'"),
        (
            {"CITIUS_KEEP_ALIVE_MS": "-1"},
            "CITIUS_KEEP_ALIVE_MS: expected a whole number of milliseconds, at least 0, got -1",
        ),
        (
            {"CITIUS_DRAIN_S": "x"},
            "CITIUS_DRAIN_S: expected a number of seconds, at least 0 and at most 100000000, got 'x'",
        ),
    ],
)  # fmt: skip
def test_wrong_values_in_the_environment(environ: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load({}, environ)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("port = '80'", "port: expected a whole number from 0 to 65535, got '80'"),
        ("port = true", "port: expected a whole number from 0 to 65535, got True"),
        ("prot = 80", "has no option prot; did you mean port?"),
        ("reload_dir = 'x'", "reload_dir: expected a list of texts, got 'x'"),
        ("port = ", "is no valid TOML"),
    ],
)
def test_wrong_values_in_the_file(tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.citius]\n" + table)
    with pytest.raises(ConfigError) as caught:
        load({"app_dir": str(tmp_path)}, {})
    assert message in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workers = 4\n[tool.citius]\nport = 1\n", "workers beside [tool.citius]"),
        ("keep-alive-ms = 4\n[tool.citius]\n", "keep-alive-ms beside [tool.citius]"),
        ("[tool]\ncitius = 3\n", "[tool.citius] is a table of options, got 3"),
    ],
)
def test_options_that_are_not_in_the_table(tmp_path: Path, text: str, message: str) -> None:
    """They were not read, without a word, or the start ended with a traceback."""
    file = tmp_path / "own.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load({}, {}, str(file))
    assert message in str(caught.value)


def test_files_without_a_table_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("tool = 'citius'\n")
    assert load({"app_dir": str(tmp_path)}, {}).port == 8000
    file.write_text("[project]\nname = 'x'\n[tool.citius]\nport = 1\n")
    assert load({}, {}, str(file)).port == 1


def test_sizes_in_the_file_are_written_as_in_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "citius.toml"
    file.write_text('body-bytes-max = "64M"\nworker_rss_bytes_max = "1g"\nhead_bytes_max = 5000\n')
    config = load({}, {}, str(file))
    assert config.limits == {"body_bytes_max": 64 << 20, "head_bytes_max": 5000}
    assert config.worker_rss_bytes_max == 1 << 30
    file.write_text('body_bytes_max = "much"')
    with pytest.raises(
        ConfigError, match="body_bytes_max: expected a whole number of bytes.* 'much'"
    ):
        load({}, {}, str(file))


def test_a_contradiction_names_the_variable_and_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"reload .* workers .*workers is set by WEB_CONCURRENCY"):
        load({}, {"CITIUS_RELOAD": "1", "WEB_CONCURRENCY": "4"})
    file = tmp_path / "citius.toml"
    file.write_text("reload = true")
    with pytest.raises(ConfigError, match=r"\(reload is set by .*citius.toml\)"):
        load({"workers": 4}, {}, str(file))


def test_variables_that_stand_for_no_option_are_named() -> None:
    environ = {
        "CITIUS_WORKER": "4",
        "CITIUS_PORT": "1",
        "CITIUS_HANDOVER": "",
        "CITIUS_LAB_X": "",
        "A": "",
    }
    assert unknown_variables(environ) == {"CITIUS_WORKER": "; did you mean CITIUS_WORKERS?"}


def test_lists_in_the_file_and_the_environment(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.citius]\nreload-include = ["*.html"]\n')
    config = load({"app_dir": str(tmp_path)}, {"CITIUS_RELOAD_DIR": "a:b"})
    assert config.reload_include == ("*.html",)
    assert config.reload_dir == ("a", "b")


def test_a_file_without_a_table_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert load({"app_dir": str(tmp_path)}, {}).port == 8000


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"workers": 2, "reload": True}, "reload and workers contradict each other"),
        ({"limits": {"head_byte_max": 1}}, "no limit is called head_byte_max; did you mean head_bytes_max?"),
        ({"limits": {"head_bytes_max": "1"}}, "head_bytes_max: expected a whole number of bytes"),
        ({"port": -1}, "port: expected a whole number from 0 to 65535, got -1"),
        ({"host": None}, "host: expected text, got None"),
        ({"host": "0.0.0.0:80"}, "the port goes to --port, and both together to --bind"),  # newcomer C
        ({"host": "[::1]:80"}, "the port goes to --port, and both together to --bind"),
        ({"uds": "a", "bind": ["127.0.0.1:1"]}, "write the socket as an address, --bind unix:a"),
        ({"request_id": "Content-Length"}, "request_id: content-length has a meaning of its own"),
        ({"request_id": "cookie"}, "request_id: cookie has a meaning of its own"),
        ({"request_id": "x-forwarded-for"}, "request_id: x-forwarded-for has a meaning of its own"),
        ({"request_id": "x y"}, "request_id: 'x y' is no name of a header"),
        ({"request_id": ""}, "request_id: '' is no name of a header"),
    ],
)  # fmt: skip
def test_a_config_that_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Config(**values)
    assert message in str(caught.value)


def test_make_sorts_limits_from_options() -> None:
    assert make({"port": 1, "fields_max": 2}) == Config(port=1, limits={"fields_max": 2})


@pytest.mark.parametrize(
    ("has_gil", "values", "expected"),
    [
        (True, {}, 1),
        (True, {"reactor_threads": 3}, 3),
        (False, {}, 6),
        (False, {"workers": 4}, 1),
        (False, {"workers": 20}, 1),
        (False, {"workers": 2, "reactor_threads": 5}, 5),
        (False, {"loop": "gevent"}, 1),
    ],
)
def test_reactors_of_a_worker(
    monkeypatch: pytest.MonkeyPatch, has_gil: bool, values: dict[str, Any], expected: int
) -> None:
    monkeypatch.setattr("citius.settings.config.has_gil", lambda: has_gil)
    monkeypatch.setattr("citius.settings.config.processors", lambda: 6)
    assert Config(**values).reactors == expected


def test_choices_may_be_in_capitals(tmp_path: Path) -> None:
    """Servers B12: gunicorn's spelling of a log level."""
    assert load({}, {"CITIUS_LOG_LEVEL": "INFO"}).log_level == "info"
    (tmp_path / "pyproject.toml").write_text('[tool.citius]\nlog-level = "Debug"\n')
    assert load({"app_dir": str(tmp_path)}, {}).log_level == "debug"


def test_what_a_higher_source_replaces_may_be_invalid(tmp_path: Path) -> None:
    """Servers D12."""
    (tmp_path / "pyproject.toml").write_text('[tool.citius]\nport = "no"\nworkers = 0\n')
    environ = {"CITIUS_PORT": "no", "CITIUS_WORKERS": "3", "WEB_CONCURRENCY": "no"}
    config = load({"port": 1, "app_dir": str(tmp_path)}, environ)
    assert (config.port, config.workers) == (1, 3)
    with pytest.raises(ConfigError, match="CITIUS_PORT: expected a whole number"):
        load({"app_dir": str(tmp_path)}, environ)
    with pytest.raises(ConfigError, match="port: expected a whole number"):
        load({"app_dir": str(tmp_path)}, {})


def test_variables_of_a_service_of_kubernetes_are_none_of_ours() -> None:
    """Servers D12."""
    environ = {
        "CITIUS_PORT": "tcp://10.0.0.7:8000",
        "CITIUS_SERVICE_HOST": "10.0.0.7",
        "CITIUS_SERVICE_PORT_HTTP": "8000",
        "CITIUS_PORT_8000_TCP_ADDR": "10.0.0.7",
        "CITIUS_SHOP_PORT": "tcp://10.0.0.8:80",
    }
    assert load({}, environ) == Config()
    assert unknown_variables(environ) == {}
    assert set(of_kubernetes(environ)) == set(environ)
    assert of_kubernetes({"CITIUS_PORT": "8000"}) == []


def test_an_empty_variable_is_none_but_for_trusted_proxies() -> None:
    """Servers D14."""
    empty = {variable: "" for option in OPTIONS.values() for variable in option.env}
    assert load({}, empty) == Config(forwarded_allow_ips=())
    assert load({}, {"FORWARDED_ALLOW_IPS": ""}).trusted == ()
    assert load({}, {"FORWARDED_ALLOW_IPS": " "}).trusted == ()
