"""Templates by Jinja2: ``pip install citius[templates]``.

Values are escaped in every template, whatever its name; there is no way to make a template of a value. Tests:
tests/server/test_templates.py.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import TYPE_CHECKING, Any

from citius._core import Response
from citius.errors import ConfigError
from citius.unknown_options import known_options
from citius.web.declarations.checks import check_callback

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from citius._core import Request

_FLASHES = "_flashes"

TEMPLATES_KEPT_MAX = 400
"""Templates that are found without a look into Jinja2's cache. Origin: the size of that. Exceeded: all are
looked up again. Test: tests/server/test_templates.py."""


@known_options
class Templates:
    """The templates of a directory.

    A template has, besides its context and ``globals``: ``request``; ``csrf_field()``, ``csrf_token()`` and
    ``csp_nonce()``, with their middleware; ``flashes()``, with sessions; ``url_for(name, …)``, where the
    application has one.

    Args:
        directory: Where they are, or several places, the first one first.
        globals: What all templates have.
        filters: Further filters.
        reload: Look for changed files.

    Raises:
        ConfigError: Jinja2 is not installed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        *,
        globals: Mapping[str, object] | None = None,
        filters: Mapping[str, Callable[..., object]] | None = None,
        reload: bool = False,
    ) -> None:
        try:
            jinja2: Any = import_module("jinja2")
        except ImportError:
            raise ConfigError("Templates needs Jinja2: pip install citius[templates]") from None
        self._markup: Any = import_module("markupsafe").Markup
        self.environment: Any = _environment_class()(
            loader=jinja2.FileSystemLoader(directory),
            autoescape=True,
            auto_reload=reload,
            undefined=jinja2.StrictUndefined,
        )
        self._loader: Any = self.environment.loader
        self._found: dict[str, Any] = {}
        for option, functions in (("globals", globals or {}), ("filters", filters or {})):
            for name, function in functions.items():
                if callable(function):
                    what = f"Templates({option}={{{name!r}: …}})"
                    check_callback(function, what, "...", makes=True)
        self.environment.globals.update(globals or {})
        self.environment.filters.update(filters or {})

    def __call__(
        self,
        name: str,
        request: Request,
        context: Mapping[str, object] | None = None,
        *,
        status_code: int = 200,
        content_type: str = "text/html; charset=utf-8",
    ) -> Response:
        """A page: the template ``name`` with ``context``. An undefined name in it is an error."""
        return Response(self.text(name, request, context), status_code, None, content_type)

    def text(self, name: str, request: Request, context: Mapping[str, object] | None = None) -> str:
        """The text of the template ``name`` with ``context``."""
        return self._template(name).render(self._context(request, context))

    def stream(
        self, name: str, request: Request, context: Mapping[str, object] | None = None
    ) -> Response:
        """A page that is sent in pieces while it is made; for long pages.

        Nonces, tokens and flash messages have to be asked for before: put them into the context.
        """
        return Response(
            _pieces(self._template(name).generate(self._context(request, context))),
            200,
            None,
            "text/html; charset=utf-8",
        )

    def _template(self, name: str) -> Any:
        environment = self.environment
        if environment.auto_reload or environment.loader is not self._loader:
            return environment.get_template(name)
        template = self._found.get(name)
        if template is None:
            template = environment.get_template(name)
            if len(self._found) >= TEMPLATES_KEPT_MAX:
                self._found.clear()
            self._found[name] = template
        return template

    def _context(self, request: Request, context: Mapping[str, object] | None) -> dict[str, Any]:
        def field() -> Any:
            from citius.web.middleware.csrf import csrf_field

            return self._markup(csrf_field(request))

        def token() -> str:
            from citius.web.middleware.csrf import csrf_token

            return csrf_token(request)

        def nonce() -> str:
            from citius.web.middleware.security_headers import csp_nonce

            return csp_nonce(request)

        own = {
            "request": request,
            "csrf_field": field,
            "csrf_token": token,
            "csp_nonce": nonce,
            "flashes": lambda: flashes(request),
        }
        url_for = getattr(request._served_app, "url_for", None)
        if url_for is not None:
            own["url_for"] = url_for
        return {**own, **(context or {})}


@functools.cache
def _environment_class() -> Any:
    """Jinja2's environment, with what it does for each page and each value done faster.

    A template of Jinja2 reads its globals from a chain of two dictionaries, twice for each page, although the
    first is nearly always empty; and each value that is put out becomes a ``Markup``, although only its text
    is joined to the page.
    """
    jinja2: Any = import_module("jinja2")
    compiler: Any = import_module("jinja2.compiler")
    markupsafe: Any = import_module("markupsafe")
    escape = markupsafe.escape
    # What `escape` makes a Markup of, in versions that have it.
    escape_text: Callable[[str], str] = getattr(markupsafe, "_escape_inner", escape)

    plain_template, generator = jinja2.Template, compiler.CodeGenerator

    class Template(plain_template):
        def new_context(
            self,
            vars: dict[str, Any] | None = None,
            shared: bool = False,
            locals: Mapping[str, Any] | None = None,
        ) -> Any:
            maps: Any = getattr(self.globals, "maps", None)
            if shared or locals or maps is None or maps[0]:
                return plain_template.new_context(self, vars, shared, locals)
            environment = self.environment
            names = environment.globals
            parent = {**names, **vars} if vars else dict(names)
            return environment.context_class(
                environment, parent, self.name, self.blocks, globals=names
            )

    class CodeGenerator(generator):
        def _output_child_pre(self, node: Any, frame: Any, finalize: Any) -> None:
            if frame.eval_ctx.volatile or not frame.eval_ctx.autoescape:
                generator._output_child_pre(self, node, frame, finalize)
                return
            self.write("environment.escaped_text(")
            if finalize.src is not None:
                self.write(finalize.src)

    class Environment(jinja2.Environment):
        template_class = Template
        # It is not documented what a generator consists of: without this method it is Jinja2's own.
        if hasattr(generator, "_output_child_pre"):
            code_generator_class = CodeGenerator

        @staticmethod
        def escaped_text(value: Any) -> str:
            if type(value) is str:
                return escape_text(value)
            return str(value) if type(value) in (int, float) else escape(value)

    return Environment


def flash(request: Request, message: str, category: str = "info") -> None:
    """Keep a message in the session for the next page that shows messages."""
    from citius.web.middleware.sessions.middleware import session

    session(request).setdefault(_FLASHES, []).append([category, message])


def flashes(request: Request) -> list[tuple[str, str]]:
    """The messages that wait, as pairs of category and text; they wait no longer."""
    from citius.web.middleware.sessions.middleware import session

    kept = session(request)
    return (
        [(category, text) for category, text in kept.pop(_FLASHES, [])] if _FLASHES in kept else []
    )


def _pieces(made: Iterator[str]) -> Iterator[str]:
    """Pieces of a size that is worth sending."""
    held: list[str] = []
    size = 0
    for piece in made:
        held.append(piece)
        size += len(piece)
        if size >= 16 * 1024:
            yield "".join(held)
            held, size = [], 0
    if held:
        yield "".join(held)
