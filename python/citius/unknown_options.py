"""Options: names that a function of the interface does not have are refused with the one that is meant.

Python's own ``TypeError`` does not say what is meant, and there is none for a decorator that hands its
options on. Values are refused by what option_values.py reads in their annotations. Tests:
``tests/gateway/test_options.py``.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

from citius import option_values
from citius.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import FrameType

_P = ParamSpec("_P")
_R = TypeVar("_R")
_ClassT = TypeVar("_ClassT", bound=type)

RENAMED: Final[dict[str, str | tuple[str, ...]]] = {
    "response_model": "response",
    "response_model_exclude_none": "exclude_none",
    "response_model_exclude_unset": "exclude_unset",
    "response_model_by_alias": "by_alias",
    "response_class": "content_type",
    "response_description": "responses",
    "media_type": "content_type",
    "status": "status_code",
    "default_status_code": "status_code",
    "guards": "dependencies",
    "dependency": "call",
    "use_cache": "cached",
    "regex": "pattern",
    "example": "examples",
    "default_factory": "default",
    "validation_alias": "alias",
    "serialization_alias": "alias",
    "path": "pattern",
    "max_body_size": "body_bytes_max",
    "sync_to_thread": "blocking",
    "include_in_openapi": "include_in_schema",
    "allow_origins": "origins",
    "allow_methods": "methods",
    "allow_headers": "headers",
    "allow_credentials": "credentials",
    "expose_headers": "expose",
    "max_age": ("max_age_s", "cache_control"),
    "html": "index",
    "timeout": ("deadline_s", "timeout_s", "wait_s", "seconds", "default", "lasts_s"),
    "deadline_s": ("seconds", "timeout_s", "lasts_s"),
    "max_size": ("size", "size_max"),
    "maxsize": ("size", "entries_max"),
    "max_connections": ("size", "readers", "connections_max"),
    "max_keepalive_connections": "connections_per_origin_max",
    "keepalive_expiry": "keepalive_s",
    "max_redirects": "redirects_max",
    "proxies": "proxy",
    "uds": "unix_path",
    "scheme_name": "name",
    "secret": ("secrets", "key"),
    "aud": "audience",
    "iss": "issuer",
    "https_only": "secure",
    "allowed_hosts": "hosts",
    "auth": ("authorization", "dependencies"),
    "security": "dependencies",
    "permissions": "dependencies",
    "max_files": "files_max",
    "max_fields": "fields_max",
    "max_file_size": "file_bytes_max",
    "max_part_size": "text_bytes_max",
    "max_memory": "memory_bytes_max",
    "max_runs": "runs_max",
    "rate": "limit",
    "requests": "limit",
    "max_requests": "limit",
    "times": "limit",
    "window": "per_s",
    "period": "per_s",
    "seconds": "per_s",
    "key_func": "key",
    "hsts": "hsts_max_age_s",
    "hsts_seconds": "hsts_max_age_s",
    "spa": "fallback",
    "max_workers": "threads",
    "workers": "threads",
    "urls": "servers",
    "url": ("to", "path"),
    "target": "to",
    "preserve_host": "host",
    "health_check": "checks",
    "max_fails": "failures",
    "fail_timeout": "failed_s",
    "retries": "attempts_max",
    "max_attempts": "attempts_max",
    "total": "attempts_max",
    "status_forcelist": "statuses",
    "backoff_factor": "backoff_s",
    "busy_timeout": "busy_s",
    "journal_mode": "pragmas",
    "foreign_keys": "pragmas",
    "redis": "url",
    "nats": "url",
    "engine": "url",
    "issuer": "servers",
    "authorization_servers": "servers",
    "required_scopes": "scopes",
    "pool_size": ("size", "readers"),
    "max_overflow": "queue_max",
    "pool_timeout": "wait_s",
    "socket_timeout": "timeout_s",
    "socket_connect_timeout": "connect_timeout_s",
    "connect_timeout": "connect_timeout_s",
    "prepared_statements": "named_statements",
    "statement_cache_size": "named_statements",
    "application_name": "name",
    "decode": "decode_responses",
    "database": "path",
    "raise_server_exceptions": "raise_errors",
    "ttl": ("ttl_s", "lasts_s"),
    "expire": ("ttl_s", "age_s"),
    "expires": ("ttl_s", "age_s"),
}
"""What options of other frameworks are called here."""

_OF_OPENAPI: Final = {
    **dict.fromkeys(("contact", "license_info", "terms_of_service", "summary"), "extra"),
    **{name: name for name in ("title", "version", "description", "servers")},
    "docs_url": "docs",
    "redoc_url": "docs",
    "openapi_url": "path",
    "openapi_tags": "tags",
}
"""Options of other frameworks' applications that ``citius.OpenAPI`` has here."""

_OF_APPLICATIONS: Final = {
    "methods": "write app.route(path, methods=[…]) for several",
    **{name: f"it belongs to openapi=OpenAPI({own}=…)" for name, own in _OF_OPENAPI.items()},
    "debug": "`citius dev` shows tracebacks",
    "middleware": "write app.middleware(…) for each",
    "exception_handlers": "write @app.exception_handler(…) above each",
    "on_startup": "write @app.on_startup above the function",
    "on_shutdown": "write @app.on_shutdown above the function",
    "lifespan": "a citius.App has a lifespan",
    "prefix": "a citius.Router has a prefix",
    "root_path": "the server has --root-path",
    "dependencies": "a citius.App and a citius.Router have dependencies=[…]",
    "tags": "a citius.App and a citius.Router have tags",
    "routes": "write @app.get(path) above each, or app.include(router)",
    "max_body_size": "the server has --body-bytes-max, and a route body_bytes_max=",
    "request_max_body_size": "the server has --body-bytes-max, and a route body_bytes_max=",
    "allowed_hosts": "write app.middleware(TrustedHosts([…]))",
    "cors_config": "write app.middleware(CORS([…]))",
    "csrf_config": "write app.middleware(CSRF())",
    "static_folder": "write app.static(prefix, directory)",
    "template_folder": "write citius.Templates(directory)",
    "before_request": "write @app.middleware above the function",
    "after_request": "write @app.middleware above the function",
    "timeout": "write app.middleware(Timeout(seconds))",
    "deadline_s": "write app.middleware(Timeout(seconds))",
    "rate_limit": "write app.middleware(RateLimit(limit, per_s, only=[path]))",
    "throttle": "write app.middleware(RateLimit(limit, per_s, only=[path]))",
    **dict.fromkeys(
        ("response_model_include", "response_model_exclude"),
        "response= is a type with the fields that are sent",
    ),
}
"""What options of other frameworks' applications, routers and routes are here."""

_OF_CLIENTS: Final = {
    "min_size": "size= says how many there are at most; they are opened when they are needed",
    **dict.fromkeys(
        ("host", "port", "user", "username", "password", "db", "ssl", "database"),
        "write it in the URL",
    ),
    "base_url": 'paths are those of the application, and headers={"host": …} says which host is asked',
    "encoding": "texts are UTF-8; decode_responses=True returns texts",
}
"""The same of clients."""

_OF_COOKIES: Final = frozenset({
    "max_age", "path", "same_site", "samesite", "https_only", "domain", "secure", "session_cookie",
    "cookie_name", "lifetime", "rolling",
})  # fmt: skip


INSTEAD: Final = {
    "include_router": "write app.include(router)",
    "register_blueprint": "write app.include(router)",
    "on_event": "write @app.on_startup or @app.on_shutdown, or App(lifespan=…)",
    "api_route": "write @app.route(path, methods=[…])",
    "add_api_route": "write app.route(path, methods=[…])(handler)",
    "add_route": "write app.route(path, methods=[…])(handler)",
    "add_url_rule": "write app.route(path, methods=[…])(handler)",
    "add_exception_handler": "write app.exception_handler(what)(handler)",
    "errorhandler": "write @app.exception_handler(404)",
    "add_event_handler": "write app.on_startup(function) or app.on_shutdown(function)",
    "add_websocket_route": "write app.websocket(path)(handler)",
    "websocket_route": "write @app.websocket(path)",
    "before_request": "write @app.middleware",
    "after_request": "write @app.middleware",
    "test_client": "write citius.testing.Client(app)",
}
"""Methods of other frameworks' applications, and what does the same here."""


OF_SERVERS: Final = frozenset(
    ("host", "log_level", "port", "reload", "ssl_certfile", "ssl_keyfile", "workers")
)
"""Options of the server that other frameworks' ``app.run`` has."""

_CALLED_ELSEWHERE: Final = {
    "run": " declares a run, @app.run(path); to serve the application write `citius serve module:app`, or "
    "app.serve()",
}
"""Methods of other frameworks that are called with other arguments than the one of that name here."""


_ROUTES: Final = frozenset(
    (
        "delete", "get", "head", "options", "patch", "post", "put", "route", "run", "uploads", "websocket",
        "webtransport",
    )
)  # fmt: skip
"""Methods that make decorators for a path."""

_SERVING: Final = frozenset({"asgi", "freeze", "serve"})
"""Methods whose mistakes are those of the application, not of their callers."""

_DECORATORS: Final = _ROUTES | {
    "completion", "exception_handler", "prompt", "resource", "rpc", "tool",
}  # fmt: skip
"""Methods that make decorators, or take the function themselves."""

_ROUTING: Final = frozenset({"dependencies", "pattern", "prefix", "router"})
"""One of these has every function that adds something to an application."""


def caller() -> str:
    """File and line of the application's code that is being executed, for messages."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("citius."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def check_decorated_name(what: str, name: object) -> None:
    """Refuse what is neither a name nor the decorated function itself: ``@app.rpc``, ``@app.rpc("name")``.

    Raises:
        ConfigError: It is something else; the message has the caller's file and line.
    """
    if name is not None and not isinstance(name, str) and not callable(name):
        raise ConfigError(f"{what} ({caller()}): a name is a text, got {name!r}")


def refuse_unknown(what: str, given: Iterable[str], known: Collection[str]) -> None:
    """Refuse options that do not exist.

    Raises:
        ConfigError: There is one; the message has the caller's file and line, and what is meant.
    """
    for name in given:
        if name not in known:
            raise ConfigError(f"{what} ({caller()}) has no option {name!r}{_instead(name, known)}")


def _instead(name: str, known: Collection[str]) -> str:
    renamed = RENAMED.get(name, ())
    for other in (renamed,) if isinstance(renamed, str) else renamed:
        if other in known:
            return f"; it is called {other}= here"
    if "config" in known:
        return f"; options of the server are those of citius.Config, config=Config({name}=…)"
    if "docs" in known and name in _OF_OPENAPI:
        return f"; it is {_OF_OPENAPI[name]}= here"
    if "cookie" in known and name in _OF_COOKIES:
        return "; cookies are described by cookie=SessionCookie(…)"
    is_application = not _ROUTING.isdisjoint(known)
    elsewhere = (_OF_APPLICATIONS if is_application else _OF_CLIENTS).get(name)
    if elsewhere is not None:
        return f"; {elsewhere}"
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1)
    if close:
        return f"; did you mean {close[0]}=?"
    if is_application and name in OF_SERVERS:
        flag = f"--{name.replace('_', '-')}"
        return f"; write `citius serve module:app {flag} …`, or app.serve(Config({name}=…))"
    return f"; there are {', '.join(sorted(known))}" if known else "; it has none"


def check_value(what: str, name: str, value: object, annotation: str) -> None:
    """Refuse a value that an option with this annotation cannot have: for options that few calls have.

    Raises:
        ConfigError: The message has the caller's file and line.
    """
    kinds, fitting = _read_once(name, annotation)
    if not _is_fitting(value, fitting):
        _refuse_mistake(what, name, value, kinds)


def _read(name: str, annotation: object) -> tuple[list[option_values.Kind], frozenset[type]]:
    kinds = option_values.kinds_of(name, annotation)
    return kinds, option_values.fitting_types(kinds)


_read_once = functools.cache(_read)


def _is_fitting(value: object, fitting: frozenset[type]) -> bool:
    """Whether the type of a value alone says that it fits: most values are of one of these types."""
    number: Any = value
    of: type = type(value)
    return of in fitting and ((of is not int and of is not float) or number > 0)


def _refuse_mistake(what: str, name: str, value: object, kinds: list[option_values.Kind]) -> None:
    if mistake := option_values.mistake(name, value, kinds):
        raise ConfigError(f"{what} ({caller()}): {mistake}")


def known_options(cls: _ClassT) -> _ClassT:
    """The class, refusing options and values that it does not have when an object of it is made."""
    return _refusing(cls, None)


def known_names(cls: _ClassT) -> _ClassT:
    """The class, refusing options that it does not have; it checks their values itself."""
    return _refusing(cls, {})


def _refusing(cls: _ClassT, annotations: Mapping[str, str] | None) -> _ClassT:
    # Those of a citius.records.record are in no signature of code.
    fields = getattr(cls, "__dataclass_fields__", {})
    if fields and annotations is None:
        annotations = {name: one.type for name, one in fields.items()}
    in_order = [name for name, one in fields.items() if not one.kw_only]
    made = with_known_options(
        cls.__init__, cls.__name__, also=fields, annotations=annotations, positional=in_order
    )
    setattr(cls, "__init__", made)  # noqa: B010 - of any class
    return cls


def with_known_options(
    call: Callable[_P, _R],
    what: str = "",
    *,
    also: Collection[str] = (),
    annotations: Mapping[str, str] | None = None,
    positional: Sequence[str] = (),
    decorates: bool = True,
) -> Callable[_P, _R]:
    """The function, refusing options that it does not have, and values that they cannot have.

    Args:
        call: A function or a method.
        what: What messages call it; its own name without it.
        also: Names that it takes in ``**options``.
        annotations: The annotations of its options; those of the function without it.
        positional: What it takes in ``*values``, in this order.
        decorates: Whether something may be done with what it returns.
    """
    function: Any = call
    code = function.__code__
    first = 1 if code.co_varnames[:1] == ("self",) else 0
    count = code.co_argcount + code.co_kwonlyargcount
    known = {*code.co_varnames[max(first, code.co_posonlyargcount) : count], *also}
    of, _, own = str(function.__qualname__).rpartition(".")
    name = what or (of if own == "__init__" else own)
    takes_any = bool(code.co_flags & inspect.CO_VARKEYWORDS) and not also
    if takes_any and decorates:
        return call  # its options are its own matter
    names = (*code.co_varnames[: code.co_argcount], *positional)
    if takes_any:
        annotations = {}  # what the function says of them is better
    values = _Values(function.__annotations__ if annotations is None else annotations)
    finish: Any = None if decorates else _NoDecorator
    if name in _DECORATORS:
        finish = _placed
    serves = name in _SERVING or call.__module__.startswith("citius.testing.")

    @functools.wraps(call)
    def checked(*args: _P.args, **options: _P.kwargs) -> _R:
        if not options.keys() <= known and not takes_any:
            refuse_unknown(name, options, known)
        values.check(name, zip(names, args, strict=False))
        values.check(name, options.items())
        try:
            made: Any = call(*args, **options)
            return made if finish is None else finish(made, name, args)
        except TypeError as error:
            # Without another frame the call itself has failed: an argument is missing, or there are too many.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            hint = _CALLED_ELSEWHERE.get(name) or _how_to_call(function, name, first, error)
            raise ConfigError(f"{name} ({caller()}){hint}") from None
        except ConfigError as error:
            if not serves:
                add_place(error, name, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
            raise

    return checked


def _placed(decorator: Any, name: str, args: tuple[object, ...]) -> Any:
    """The decorator that a method has made of ``args``, whose refusals have the line that it stands on."""
    if any(one is decorator for one in args):
        return decorator  # `@app.rpc` without parentheses gives the function back

    @functools.wraps(decorator)
    def decorate(function: Any) -> Any:
        try:
            return decorator(function)
        except ConfigError as error:
            add_place(error, name, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
            raise

    return decorate


def _how_to_call(function: Any, name: str, first: int, error: TypeError) -> str:
    """What is wrong with the arguments of a call, and how it is written."""
    return f": {_mistake_of(error)}; write {_call_of(function, name, first)}"


def _call_of(function: Any, name: str, first: int) -> str:
    """A call with what it needs: ``static(prefix, directory, …)``, or the decorator that it makes."""
    if name in _ROUTES:
        return f'@app.{name}("/path") above a function'
    parameters = list(inspect.signature(function).parameters.values())[first:]
    needed = [
        one.name if one.kind is not one.KEYWORD_ONLY else f"{one.name}=…"
        for one in parameters
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    return f"{name}({', '.join([*needed, *(['…'] if len(needed) < len(parameters) else [])])})"


def _mistake_of(error: TypeError) -> str:
    """What is wrong with a call, without the name of the function; ``self`` is not counted."""
    text = str(error).partition("() ")[2] or str(error)
    return re.sub(
        r"takes (?:from \d+ to )?\d+ positional arguments? but \d+ (?:\w+ )?(?:was|were) given",
        "there are too many positional arguments",
        text,
    )


def add_place(error: ConfigError, what: str, frame: FrameType) -> None:
    """Have an error say which line of the application has made it, unless it does or ``frame`` is ours."""
    text = str(error)
    is_ours = frame.f_globals.get("__name__", "").startswith("citius.")
    if is_ours or len(error.args) != 1 or _PLACE.search(text):
        return
    place = f"({frame.f_code.co_filename}:{frame.f_lineno})"
    own = re.match(rf"{re.escape(what)}(?!\w)(?:\([^()]*\))?", text)
    error.args = (f"{own[0]} {place}{text[own.end() :]}" if own else f"{what} {place}: {text}",)


_PLACE: Final = re.compile(r"(?:\.py|>):\d+")
"""File and line, as ``caller`` and ``describe`` write them."""


def statement(call: Callable[_P, None]) -> Callable[_P, None]:
    """The method as ``with_known_options`` makes it, for one that decorates nothing.

    ``@app.static(…)`` above a function says so, in place of an error about ``None``.
    """
    return with_known_options(call, decorates=False)


class _NoDecorator:
    """What a declaration without a function returns."""

    __slots__ = ("_name",)

    def __init__(self, made: None, name: str, args: object) -> None:
        self._name = name

    def __bool__(self) -> bool:
        return False

    def __call__(self, *_: object) -> object:
        name = self._name
        raise ConfigError(
            f"{name} ({caller()}) decorates no function: write app.{name}(…) without @, as a statement"
        )


class _Values:
    """What the values of a function's options may be, read from an annotation when it is first given."""

    def __init__(self, annotations: Mapping[str, Any]) -> None:
        self._annotations = annotations
        self._known: dict[str, tuple[list[option_values.Kind], frozenset[type]]] = {}

    def check(self, what: str, given: Iterable[tuple[str, object]]) -> None:
        """Refuse what an option cannot be.

        Raises:
            ConfigError: There is one; the message has the caller's file and line.
        """
        known = self._known
        for name, value in given:
            kinds, fitting = known.get(name) or self._read(name)
            if kinds and not _is_fitting(value, fitting):
                _refuse_mistake(what, name, value, kinds)

    def _read(self, name: str) -> tuple[list[option_values.Kind], frozenset[type]]:
        self._known[name] = found = _read(name, self._annotations.get(name))
        return found
