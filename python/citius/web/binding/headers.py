"""Multi-mappings of a message: ``Headers``, ``MutableHeaders``, ``QueryParams``.

All three keep what was sent, in the order it was sent, doubles included; the mapping face shows one
value per name. Field names are compared without regard to case (RFC 9110 §5.1), query names are not.
Made by the extension when an attribute is first asked for; tests are in tests/unit/test_headers.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

_T = TypeVar("_T")


class Headers(Mapping[str, str]):
    """The fields of a request, read only.

    ``headers["accept"]`` joins several lines of one name with ``", "`` (RFC 9110 §5.3);
    ``getlist`` keeps them apart.
    """

    __slots__ = ("_items",)

    def __init__(self, items: list[tuple[str, str]]) -> None:
        """Show ``items``, whose names are in lower case."""
        self._items = items

    def getlist(self, name: str) -> list[str]:
        """The values of all lines called ``name``."""
        name = name.lower()
        return [value for key, value in self._items if key == name]

    def multi_items(self) -> list[tuple[str, str]]:
        """All lines as they came."""
        return list(self._items)

    def __getitem__(self, name: str) -> str:
        wanted = name.lower()
        found = None
        for key, value in self._items:
            if key == wanted:
                if found is not None:
                    return ", ".join(self.getlist(name))
                found = value
        if found is None:
            raise KeyError(name)
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and any(key == name.lower() for key, _ in self._items)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key for key, _ in self._items))

    def __len__(self) -> int:
        return len({key for key, _ in self._items})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"


class MutableHeaders(MutableMapping[str, str]):
    """The fields of an answer: a view over the list that the extension will send.

    A name or value that would change the framing of the message (a line break, a NUL) is refused
    here, where the traceback still shows who wrote it; the extension checks again.
    """

    __slots__ = ("_items",)

    def __init__(self, items: list[tuple[str, str]] | None = None) -> None:
        """Show and change ``items`` in place."""
        self._items: list[tuple[str, str]] = [] if items is None else items

    def add(self, name: str, value: str) -> None:
        """Add a line, next to others of its name."""
        _check(name, value)
        self._items.append((name, value))

    def add_checked(self, *lines: tuple[str, str]) -> None:
        """Add lines that have been checked before, next to others of their names."""
        self._items += lines

    def add_missing(self, lines: Sequence[tuple[str, str]]) -> None:
        """Add those of the lines whose names are not there, and that have been checked before."""
        items = self._items
        if items:
            there = {key.lower() for key, _ in items}
            lines = [line for line in lines if line[0] not in there]
        items += lines

    def getlist(self, name: str) -> list[str]:
        """The values of all lines called ``name``."""
        name = name.lower()
        return [value for key, value in self._items if key.lower() == name]

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, default: str, /) -> str: ...
    @overload
    def get(self, name: str, default: _T, /) -> str | _T: ...
    def get(self, name: str, default: object = None, /) -> object:
        """The value of a name as ``headers[name]`` has it, or ``default``."""
        name = name.lower()
        found = None
        for key, value in self._items:
            if key == name or key.lower() == name:
                found = value if found is None else f"{found}, {value}"
        return default if found is None else found

    def multi_items(self) -> list[tuple[str, str]]:
        """All lines in their order."""
        return list(self._items)

    def set_cookie(
        self,
        name: str,
        value: str = "",
        *,
        max_age_s: int | None = None,
        path: str | None = "/",
        domain: str | None = None,
        secure: bool = False,
        http_only: bool = True,
        same_site: Literal["lax", "strict", "none"] | None = "lax",
        expires: datetime | None = None,
        partitioned: bool = False,
    ) -> None:
        """Add a ``Set-Cookie`` line (RFC 6265).

        Args:
            name: The cookie's name, a token.
            value: No control characters, quotes, commas, semicolons, backslashes or spaces;
                encode others.
            max_age_s: Seconds to live; 0 deletes the cookie, ``None`` ends it with the session.
            path: Paths it is sent for.
            domain: Hosts it is sent to; ``None`` means this one only.
            secure: Only over TLS.
            http_only: Not for scripts.
            same_site: Whether it travels with requests from other sites.
            expires: When it ends, with a time zone; ``max_age_s`` has precedence in clients.
            partitioned: Whether a site in which this one is embedded has a jar of its own for it (CHIPS).

        Raises:
            ValueError: A part holds what RFC 6265 forbids, or clients throw such a cookie away.
        """
        same_site = _lower(same_site)
        check_cookie(
            name,
            path=path,
            domain=domain,
            secure=secure,
            same_site=same_site,
            partitioned=partitioned,
        )
        if not name or any(c in _COOKIE_SEPARATORS or not "!" <= c <= "~" for c in name):
            raise ValueError(f"a cookie's name is a token, got {name!r}")
        if any(c in ' ",;\\' or not "!" <= c <= "~" for c in value):
            raise ValueError(
                f"the value of cookie {name} holds a character that RFC 6265 forbids: {value!r}"
            )
        parts = [f"{name}={value}"]
        for attribute, given in (("Path", path), ("Domain", domain)):
            if given is not None:
                if ";" in given:
                    raise ValueError(f"{attribute} of cookie {name} holds a semicolon: {given!r}")
                parts.append(f"{attribute}={given}")
        if max_age_s is not None:
            parts.append(f"Max-Age={max_age_s}")
        if expires is not None:
            parts.append(f"Expires={_http_date(expires)}")
        if secure:
            parts.append("Secure")
        if http_only:
            parts.append("HttpOnly")
        if same_site is not None:
            parts.append(f"SameSite={same_site.capitalize()}")
        if partitioned:
            parts.append("Partitioned")
        self.add("set-cookie", "; ".join(parts))

    def delete_cookie(
        self,
        name: str,
        *,
        path: str | None = "/",
        domain: str | None = None,
        secure: bool | None = None,
        same_site: Literal["lax", "strict", "none"] | None = "lax",
        partitioned: bool = False,
    ) -> None:
        """Tell the client to forget a cookie that was set with these attributes.

        Args:
            name: The cookie's name.
            path: The path that it was set with.
            domain: The domain that it was set with.
            secure: Whether it was set as such; if this is not said, where its name, ``same_site`` or
                ``partitioned`` demand it.
            same_site: Whether it travels with requests from other sites.
            partitioned: Whether it was set as such.
        """
        same_site = _lower(same_site)
        if secure is None:
            is_prefixed = name.lower().startswith(("__host-", "__secure-"))
            secure = is_prefixed or partitioned or same_site == "none"
        self.set_cookie(
            name, max_age_s=0, path=path, domain=domain, secure=secure, same_site=same_site,
            partitioned=partitioned,
        )  # fmt: skip

    def __getitem__(self, name: str) -> str:
        found = self.get(name)
        if found is None:
            raise KeyError(name)
        return found

    def __setitem__(self, name: str, value: str) -> None:
        _check(name, value)
        self._drop(name)
        self._items.append((name, value))

    def __delitem__(self, name: str) -> None:
        if not self._drop(name):
            raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key.lower() for key, _ in self._items))

    def __len__(self) -> int:
        return len({key.lower() for key, _ in self._items})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"

    def _drop(self, name: str) -> bool:
        """Remove all lines called ``name``; the list stays the same object."""
        if not self._items:
            return False
        name = name.lower()
        kept = [item for item in self._items if item[0].lower() != name]
        dropped = len(kept) < len(self._items)
        if dropped:
            self._items[:] = kept
        return dropped


class QueryParams(Mapping[str, str]):
    """The parameters of a query or a form; ``query["page"]`` is the last value of that name."""

    __slots__ = ("_items", "_last")

    def __init__(self, items: Iterable[tuple[str, str]]) -> None:
        """Keep ``items``, decoded."""
        self._items = list(items)
        self._last = dict(self._items)

    def getlist(self, name: str) -> list[str]:
        """All values of that name."""
        return [value for key, value in self._items if key == name]

    def multi_items(self) -> list[tuple[str, str]]:
        """All parameters as they came."""
        return list(self._items)

    def __getitem__(self, name: str) -> str:
        return self._last[name]

    def __contains__(self, name: object) -> bool:
        return name in self._last

    def __iter__(self) -> Iterator[str]:
        return iter(self._last)

    def __len__(self) -> int:
        return len(self._last)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._items!r})"


def _lower(same_site: Any) -> Any:
    """``Lax`` is ``lax``, as in other frameworks; what is no text is left to `check_cookie`."""
    return same_site.lower() if isinstance(same_site, str) else same_site


def check_cookie(
    name: str,
    *,
    path: str | None,
    domain: str | None,
    secure: bool,
    same_site: str | None,
    partitioned: bool = False,
) -> None:
    """Refuse attributes with which clients throw a cookie away (RFC 6265bis §4.1.3, §5.7; CHIPS).

    Raises:
        ValueError: They do, or ``same_site`` is none that they know.
    """
    lower = name.lower()
    wrong = ""
    if same_site not in ("lax", "strict", "none", None):
        # Clients take what they do not know for "lax", or for "none".
        raise ValueError(
            f'same_site of the cookie {name} is "lax", "strict", "none" or None, got {same_site!r}'
        )
    if not secure:
        if lower.startswith(("__host-", "__secure-")):
            wrong = "its prefix demands secure=True"
        elif same_site == "none":
            wrong = 'same_site="none" demands secure=True'
        elif partitioned:
            wrong = "partitioned=True demands secure=True"
    if lower.startswith("__host-") and (path != "/" or domain is not None):
        wrong = 'its prefix demands path="/" and no domain'
    if domain is not None and not _is_domain(domain):
        wrong = f"its domain is a name alone, without scheme and port, got {domain!r}"
    if wrong:
        raise ValueError(f"clients throw the cookie {name} away: {wrong}")


def _is_domain(text: str) -> bool:
    """Whether this can be the domain of a cookie; a dot in front of it means nothing any more."""
    labels = text.removeprefix(".").split(".")
    return text.isascii() and all(
        label.replace("-", "").replace("_", "").isalnum() for label in labels
    )


def _http_date(at: datetime) -> str:
    """A date of HTTP (RFC 9110 §5.6.7)."""
    from email.utils import format_datetime

    if at.tzinfo is None:
        raise ValueError(f"expires needs a time zone, got {at!r}: write datetime.now(UTC) + …")
    from datetime import UTC

    return format_datetime(at.astimezone(UTC), usegmt=True)


OF_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"}
)
"""Fields that frame a response or are for one connection, which is the server's (RFC 9110 §7.6.1).

Those of an ASGI application are ignored, as the specification says of ``transfer-encoding``; in other
responses they are errors.
"""


def is_of_connection(name: str, value: str) -> bool:
    """Whether a response cannot have this field, its name in any case: as ``Fields::push`` refuses it.

    ``Connection`` may say ``close``, which is granted, and ``keep-alive``.
    """
    name = name.lower()
    if name != "connection":
        return name in OF_CONNECTION
    options = {option.strip().lower() for option in value.split(",")}
    return not options <= {"", "close", "keep-alive"}


def _check(name: str, value: str) -> None:
    """Refuse what RFC 9110 §5.5 keeps out of a field."""
    if name not in _checked:
        if not name or not _TOKEN.issuperset(name):
            raise ValueError(f"a field name is a token, got {name!r}")
        if len(_checked) < _CHECKED_MAX:
            _checked.add(name)
    if "\r" in value or "\n" in value or "\0" in value:
        raise ValueError(f"the value of field {name} holds a line break or NUL: {value!r}")


_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_COOKIE_SEPARATORS = frozenset('()<>@,;:\\"/[]?={} \t')

# Names that were found to be tokens: applications use few.
_CHECKED_MAX = 256
_checked: set[str] = set()
