"""Templates: context, escaping, nonces and tokens, flash messages, and what hostile values cannot do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import markupsafe
import pytest
from citius import App, Request, Response, Templates, flash, flashes, redirect
from citius.testing import Client
from citius.web.middleware import CSRF, SecurityHeaders, Sessions
from citius.web.responses import templates as templates_module

HOSTILE = "{{ 7 * 7 }}{% include '../secret.txt' %}<script>alert(1)</script>\"'"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    pages = tmp_path / "pages"
    pages.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (pages / "page.txt").write_text("<p title='{{ name }}'>{{ name }} {{ shop }}</p>")
    (pages / "form.html").write_text(
        "<script nonce={{ csp_nonce() }}></script><form>{{ csrf_field() }}</form>{{ request.path }}"
    )
    (pages / "flashes.html").write_text(
        "{% for kind, text in flashes() %}[{{ kind }} {{ text }}]{% endfor %}"
    )
    (pages / "undefined.html").write_text("{{ nothing }}")
    (pages / "long.html").write_text("{% for n in range(count) %}{{ n }},{% endfor %}")
    templates = Templates(pages, globals={"shop": "Shop"}, filters={"loud": str.upper})

    app = App()
    app.middleware(SecurityHeaders())
    app.middleware(Sessions("a secret of sixteen bytes"))
    app.middleware(CSRF(tokens=True))
    app.get("/page")(
        lambda request: templates("page.txt", request, {"name": request.query.get("name", "")})
    )

    @app.get("/show/{name:path}")
    def show(request: Request, name: str) -> Response:
        return templates(name, request)

    @app.get("/form")
    async def form(request: Request) -> Response:
        return templates("form.html", request, status_code=422)

    @app.get("/long")
    def long(request: Request) -> Response:
        return templates.stream("long.html", request, {"count": 20_000})

    @app.get("/flash")
    def leave(request: Request) -> Response:
        flash(request, "<b>saved</b>")
        flash(request, "twice", "warning")
        return redirect("/show/flashes.html", 303)

    @app.get("/json")
    def as_json(request: Request) -> Any:
        return flashes(request)

    with Client(app, raise_errors=False) as client:
        yield client


def test_values_are_escaped_whatever_the_template_is_called(client: Client) -> None:
    answer = client.get("/page", params={"name": HOSTILE})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "{{ 7 * 7 }}" in answer.text
    assert "<script>" not in answer.text
    assert "secret" not in answer.text.replace("secret.txt", "")
    assert answer.text.count("'") == 2
    assert answer.text.endswith(" Shop</p>")


@pytest.mark.parametrize(
    "name", ["../secret.txt", "/etc/passwd", "%2e%2e/secret.txt", "missing", ""]
)
def test_names_that_lead_elsewhere(client: Client, name: str) -> None:
    answer = client.get(f"/show/{name}")
    assert answer.status_code == 500
    assert "secret" not in answer.text


def test_an_undefined_name_is_an_error(client: Client) -> None:
    assert client.get("/show/undefined.html").status_code == 500


def test_nonces_and_tokens(client: Client) -> None:
    answer = client.get("/form")
    assert answer.status_code == 422
    nonce = answer.text.partition("nonce=")[2].partition(">")[0]
    assert f"'nonce-{nonce}'" in answer.headers["content-security-policy"]
    assert '<input type="hidden" name="csrf_token"' in answer.text
    assert answer.text.endswith("/form")


def test_flash_messages_are_shown_once(client: Client) -> None:
    assert client.get("/flash").status_code == 303
    shown = client.get("/show/flashes.html").text
    assert shown == "[info &lt;b&gt;saved&lt;/b&gt;][warning twice]"
    assert client.get("/show/flashes.html").text == ""
    client.get("/flash")
    assert client.get("/json").json() == [["info", "<b>saved</b>"], ["warning", "twice"]]


def test_long_pages_are_streamed(client: Client) -> None:
    answer = client.get("/long")
    assert answer.text == "".join(f"{n}," for n in range(20_000))
    assert "content-length" not in answer.headers


PAGES = {
    "base.html": "<title>{% block title %}{{ name }}{% endblock %}</title>{% block body %}{% endblock %}",
    "page.html": "{% extends 'base.html' %}{% block title %}{{ super() }}!{% endblock %}"
    "{% block body %}{% for one in items %}{{ loop.index }} {{ one.text }} {{ one['n'] }};{% endfor %}"
    "{% endblock %}",
    "macros.html": "{% macro cell(value) %}<td>{{ value }}{{ caller() if caller is defined else '' }}</td>"
    "{% endmacro %}"
    "{{ cell(name) }}{% call cell(1) %}<{{ name }}>{% endcall %}",
    "set.html": "{% set kept %}<i>{{ name }}</i>{% endset %}{{ kept }}{{ name|upper }}{{ '<'|e }}"
    "{{ '<b>'|safe }}"
    "{% filter upper %}{{ name }}{% endfilter %}{{ kept|length }}{{ name ~ '<' }}",
    "values.html": "{{ none }}{{ 1.5 }}{{ true }}{{ [name] }}{{ html }}{{ html ~ name }}{{ number }}"
    "{{ sub }}",
    "auto.html": "{% autoescape false %}{{ name }}{% endautoescape %}{% autoescape flag %}{{ name }}"
    "{% endautoescape %}",
    "import.html": "{% import 'macros.html' as m with context %}{{ m.cell(name) }}"
    "{% include 'set.html' %}{{ shop }}",
}


class Sub(str):
    __slots__ = ()


class Html:
    def __html__(self) -> str:
        return "<html>"


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("finalize", [None, lambda value: "-" if value is None else value])
def test_pages_are_those_of_jinja2(page: str, finalize: Any, tmp_path: Path) -> None:
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    templates = Templates(tmp_path, globals={"shop": "<Shop>"})
    plain = jinja2.Environment(
        loader=jinja2.FileSystemLoader(tmp_path), autoescape=True, undefined=jinja2.StrictUndefined
    )
    plain.globals["shop"] = "<Shop>"
    items = [{"text": "a & b", "n": 1}, {"text": markupsafe.Markup("<b>"), "n": 2.5}]
    context = {
        "name": "'<\"&>", "items": items, "html": Html(), "number": 10**30, "sub": Sub("<"), "flag": True,
    }  # fmt: skip
    app = App()
    app.get("/")(lambda request: templates(page, request, context))
    templates.environment.finalize = plain.finalize = finalize
    with Client(app) as client:
        assert client.get("/").text == plain.get_template(page).render(**context)


def test_globals_may_change_and_are_not_shared(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("{{ shop }}{{ own|default('') }}")
    templates = Templates(tmp_path, globals={"shop": "a"})
    app = App()
    app.get("/")(lambda request: templates("page.html", request))
    with Client(app) as client:
        assert client.get("/").text == "a"
        templates.environment.globals["shop"] = "b"
        assert client.get("/").text == "b"
        templates.environment.get_template("page.html", globals={"own": "c"})
        assert client.get("/").text == "bc"
        assert "own" not in templates.environment.globals


def test_few_templates_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(templates_module, "TEMPLATES_KEPT_MAX", 2)
    for name in "abc":
        (tmp_path / name).write_text(name)
    templates = Templates(tmp_path)
    app = App()
    app.get("/{name}")(lambda request, name: templates(name, request))
    with Client(app) as client:
        assert [client.get(f"/{name}").text for name in "abcabc"] == list("abcabc")
    assert len(templates._found) <= 2
