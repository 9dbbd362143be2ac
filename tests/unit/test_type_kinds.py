"""What annotations consist of: one list of containers for binding, filters, documents and checks."""

from __future__ import annotations

import collections
import dataclasses
import types
import typing
from collections import abc
from typing import (
    Annotated,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    Required,
    TypedDict,
    TypeVar,
)

import msgspec
import pydantic
import pytest
from citius.web.declarations.type_kinds import (
    bare,
    fields_of,
    has_record,
    kind_of,
    metadata_of,
    normal,
    walk,
)
from typing_extensions import TypeAliasType

T = TypeVar("T")
K = TypeVar("K")
BoundToUser = TypeVar("BoundToUser", bound="User")
OneOf = TypeVar("OneOf", int, str)


class User(msgspec.Struct):
    name: str


class Model(pydantic.BaseModel):
    name: str


class Users(list[User]):
    pass


class Stack(collections.UserList[T]):
    pass


class ById(dict[int, T], Generic[T]):
    pass


class Tags(abc.Sequence[str]):
    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: Any) -> Any:
        raise IndexError


class Pair(NamedTuple):
    left: User
    right: int


class Keyed(TypedDict):
    user: Required[User]


class Page(msgspec.Struct, Generic[T]):
    items: list[T]
    next: Page[T] | None = None
    count: typing.ClassVar[int] = 0


class UserPage(Page[User]):
    total: int = 0


@dataclasses.dataclass
class Swapped(Generic[K, T]):
    first: T
    second: dict[K, T]


Name = NewType("Name", User)
Alias = TypeAliasType("Alias", "User")
Many = TypeAliasType("Many", list[T], type_params=(T,))
Swap = TypeAliasType("Swap", dict[K, T], type_params=(T, K))
Tree = TypeAliasType("Tree", "dict[str, Tree] | User")


class Box(Generic[T]):
    pass


ARRAYS: Final = [
    list[User], typing.List[User], tuple[User, ...], set[User], frozenset[User], collections.deque[User],  # noqa: UP006
    typing.Deque[User], typing.Sequence[User], abc.Sequence[User], abc.MutableSequence[User],  # noqa: UP006
    abc.Collection[User], typing.Iterable[User], abc.Iterable[User], abc.Container[User],
    abc.Reversible[User], abc.Set[User], typing.AbstractSet[User], abc.MutableSet[User],
    abc.ValuesView[User], abc.KeysView[User], collections.UserList[User], Users, Stack[User], Many[User],
    Annotated[list[User], "doc"],
    NewType("NewUsers", list[User]),
]  # fmt: skip

MAPPINGS: Final = [
    dict[str, User], typing.Dict[str, User], collections.OrderedDict[str, User],  # noqa: UP006
    collections.defaultdict[str, User], collections.ChainMap[str, User], collections.UserDict[str, User],
    types.MappingProxyType[str, User], abc.Mapping[str, User], typing.Mapping[str, User],
    abc.MutableMapping[str, User], ById[User], Swap[User, str],
]  # fmt: skip


@pytest.mark.parametrize("annotation", ARRAYS, ids=str)
def test_arrays(annotation: Any) -> None:
    found = kind_of(annotation)
    assert found.kind == "array"
    assert bare(found.parts[0]) is User
    assert found.cls in (list, tuple, set, frozenset)
    assert has_record(annotation)
    assert "StructType" in str(msgspec.inspect.type_info(normal(annotation)))


@pytest.mark.parametrize("annotation", MAPPINGS, ids=str)
def test_mappings(annotation: Any) -> None:
    found = kind_of(annotation)
    assert (found.kind, found.cls) == ("mapping", dict)
    assert bare(found.parts[1]) is User
    assert has_record(annotation)
    assert "StructType" in str(msgspec.inspect.type_info(normal(annotation)))


@pytest.mark.parametrize(
    "annotation",
    [User, Model, Name, Alias, BoundToUser, Annotated[User, 1], Keyed, Page[User], Page, UserPage,
     Swapped[int, User], Required[User]],
    ids=str,
)  # fmt: skip
def test_records(annotation: Any) -> None:
    assert kind_of(annotation).kind == "record"
    assert has_record(annotation)


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [(int, "plain"), (str, "plain"), (Literal["a"], "plain"), (None, "plain"), (Any, "any"), (object, "any"),
     (OneOf, "union"), (T, "any"), (User | None, "union"), (tuple[int, str], "tuple"), (Pair, "tuple"),
     (abc.Iterator[User], "stream"), (abc.AsyncGenerator[User, None], "stream"), (Box[User], "unknown"),
     (type[User], "unknown"), (abc.Callable[..., User], "unknown"), (Tags, "array"), (list, "array"),
     (collections.Counter[str], "mapping"), (dict, "mapping")],
    ids=str,
)  # fmt: skip
def test_other_kinds(annotation: Any, kind: str) -> None:
    assert kind_of(annotation).kind == kind


def test_records_are_found_at_any_depth() -> None:
    for deep in (
        dict[str, list[User | None]], tuple[int, User], list[Pair], Pair, Tree, Box[User], abc.Iterator[User],
        Annotated[list[Annotated[Name, 1]], 2],
    ):  # fmt: skip
        assert has_record(deep), deep
    assert not has_record(dict[str, list[int]])
    assert not has_record(Literal["User"])


def test_fields_have_the_arguments_of_their_class() -> None:
    assert fields_of(Page[User]) == {"items": list[User], "next": Page[User] | None}
    assert fields_of(UserPage)["items"] == list[User]
    assert fields_of(Swapped[int, User]) == {"first": User, "second": dict[int, User]}
    assert fields_of(Pair) == {"left": User, "right": int}
    assert fields_of(Keyed) == {"user": Required[User]}
    assert fields_of(Model) == {"name": str}


def test_names_are_looked_through() -> None:
    key = TypeAliasType("key", Annotated[Name, "inner"])
    assert metadata_of(Annotated[key, "outer"]) == ("outer", "inner")
    assert bare(Annotated[key, "outer"]) is User
    assert User in list(walk(Tree))


def test_normal_types_keep_their_metadata_and_what_needs_no_change() -> None:
    for same in (
        int,
        list[int],
        dict[str, User],
        User | None,
        Page[User],
        Annotated[list[User], 1],
    ):
        assert normal(same) is same
    assert normal(Annotated[abc.Iterable[Name], 1]) == Annotated[list[User], 1]
    assert (
        normal(dict[str, collections.deque[Annotated[Name, 2]]])
        == dict[str, list[Annotated[User, 2]]]
    )
    assert normal(Many[Alias] | None) == list[User] | None
    with pytest.raises(RecursionError):
        normal(Tree)
