"""What is asked of a server and which responses are right: the contract, one file per workload.

``lab/workloads/NAME.toml`` says what is requested and what the response has to be. Where a check
takes code, or a request has random input, ``lab/workloads/NAME.py`` beside it (with ``_`` for ``-``)
defines ``check(response, target)``, ``probe(random)`` and ``equal_work(target, random)``. Golden
responses are computed independently of every contestant's code; a check parses a response and compares
values, it never compares with another server's response.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass, field, replace
from functools import cache
from types import ModuleType  # noqa: TC003 (the reader of definitions evaluates annotations)
from typing import TYPE_CHECKING, Any, Literal

from citius_lab import paths
from citius_lab.definitions import reader
from citius_lab.definitions.reader import NOT_A_KEY
from citius_lab.errors import DefinitionError

if TYPE_CHECKING:
    import random
    from pathlib import Path


class WrongResponse(Exception):
    """A server responded, and the response is not the golden one."""


@dataclass(frozen=True, slots=True)
class Response:
    """One complete response as the verifier saw it.

    Attributes:
        encoded: The result of a procedure as it came, around the text in ``body``.
    """

    status: int
    content_type: str
    body: bytes
    elapsed_s: float
    encoded: bytes = b""


@dataclass(frozen=True, slots=True)
class Expect:
    """What a response has to be, as far as it takes no code to say.

    Attributes:
        body: All of the content.
        content_type: The media type, without parameters.
        numbers: The content is one of these integers, in decimal digits.
        elapsed_s_min: The response comes no earlier than this.
    """

    body: bytes | None = None
    content_type: str | None = None
    numbers: tuple[int, ...] = ()
    elapsed_s_min: float = 0.0

    def check(self, what: str, answer: Response) -> None:
        """Check a response.

        Raises:
            WrongResponse: It is another one.
        """
        if self.content_type is not None:
            expect(f"{what}, content type", self.content_type, answer.content_type)
        if self.body is not None:
            expect(what, self.body, answer.body)
        if self.numbers and (found := integer(what, answer.body)) not in self.numbers:
            known = " or ".join(map(str, self.numbers))
            raise WrongResponse(f"{what}: expected {known}, got {found}")
        if answer.elapsed_s < self.elapsed_s_min:
            raise WrongResponse(
                f"{what}: expected a response after {self.elapsed_s_min * 1e3:g} ms or more, "
                f"it came after {answer.elapsed_s * 1e3:.2f} ms"
            )


@dataclass(frozen=True, slots=True)
class Mixed:
    """One of the requests that a case draws from.

    Attributes:
        weight: How often it is drawn, relative to the others; 0 is asked before a measurement only.
        method: The case's where it is empty.
        body: Its content; the case's where it is empty.
        is_chunked: Whether its content is sent in chunks, which HTTP/1.1 alone has.
        golden: What the code's ``check_mixed`` compares with, where the request does not say it.
        is_background: Whether its responses are only checked: they count for no rate and no latency.
        is_stable: Whether every response to it has the same bytes; of others status and length are compared.
    """

    target: str
    weight: int = 1
    headers: tuple[tuple[str, str], ...] = ()
    method: str = ""
    body: bytes = b""
    is_chunked: bool = False
    golden: str = ""
    is_background: bool = False
    is_stable: bool = True

    def within(self, case: Case) -> Case:
        """Return the case as this request asks it."""
        return replace(
            case,
            method=self.method or case.method,
            headers=(*case.headers, *self.headers),
            body=self.body or case.body,
            is_chunked=self.is_chunked,
        )


@dataclass(frozen=True, slots=True)
class Case:
    """One request that is measured: a workload at one size.

    Attributes:
        id: Name in records and tables; the workload's, with a size where there are several.
        target: The request target that is measured.
        connections: Connections of the closed loop: enough to keep one core of any contestant
            busy, few where a request takes long.
        title: What the request makes the server do, for the report.
        workload: What a contestant has to be able to do; the file's name.
        headers: Further field lines of the request.
        body: Content of the request, or the message where the workload is one of messages.
        is_chunked: Whether the content is sent in chunks instead of with its length.
        body_repeats: How often ``body`` is repeated in it.
        status: The status of a right response.
        check_every: The load generator compares the bytes of one response in so many; lengths of all.
        is_stable: Whether every response has the same bytes, so that the load generator can compare.
        mix: What is requested instead, drawn by weight; ``target`` is what is asked before and after.
        is_varied: Whether the mix is what ``requests(random)`` of the workload's code returns.
        is_scored_by_size: Whether small responses count besides many, as in HttpArena's json-comp.
        proved_by: The case of the same work whose answers cannot be given without it, where this one's can.
    """

    id: str
    target: str
    connections: int
    title: str
    workload: str = field(default="", metadata=NOT_A_KEY)
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    is_chunked: bool = False
    body_repeats: int = 1
    status: int = 200
    check_every: int = 1
    is_stable: bool = True
    mix: tuple[Mixed, ...] = ()
    is_varied: bool = False
    is_scored_by_size: bool = False
    proved_by: str | None = None

    @property
    def has_background(self) -> bool:
        """Whether some of its requests count for no rate, so that the rate is no capacity."""
        return any(one.is_background for one in self.mix)

    def requests(self, random: random.Random) -> tuple[Mixed, ...]:
        """Return what the load generator draws from; nothing where it is the target alone."""
        if not self.is_varied:
            return self.mix
        code: Any = contract().workloads[self.workload].code
        return tuple(code.requests(random))

    @property
    def noise_class(self) -> str:
        """What its figures vary with, as the workload says."""
        workload = contract().workloads.get(self.workload)
        return "server" if workload is None else workload.noise_class

    def check(self, answer: Response, target: str | None = None) -> None:
        """Check a response to ``target``, the measured one by default.

        Raises:
            WrongResponse: Status, type or body are not what the contract says.
        """
        if answer.status != self.status:
            raise WrongResponse(f"{self.id}: expected status {self.status}, got {answer.status}")
        if (workload := contract().workloads.get(self.workload)) is not None:
            if workload.messages:
                expect(f"{self.id}, the message that came back", self.body, answer.body)
            workload.check(answer, target or self.target)

    def check_mixed(self, answer: Response, one: Mixed) -> None:
        """Check a response to a request of the mix, by ``check_mixed`` of the code if it has that.

        Raises:
            WrongResponse: Status, type or body are not what the contract says.
        """
        workload = contract().workloads.get(self.workload)
        if workload is None or not hasattr(workload.code, "check_mixed"):
            return self.check(answer, one.target)
        code: Any = workload.code
        return code.check_mixed(answer, one)

    def probe(self, random: random.Random) -> str:
        """Return a target of this workload with random input, the measured one if it has none."""
        workload = contract().workloads.get(self.workload)
        if workload is None or not hasattr(workload.code, "probe"):
            return self.target
        target: str = workload.code.probe(random)  # pyright: ignore[reportOptionalMemberAccess]
        return target

    def equal_work(self, random: random.Random) -> str | None:
        """Return another target that takes the same work; ``None`` where the workload knows none."""
        workload = contract().workloads.get(self.workload)
        if workload is None or not hasattr(workload.code, "equal_work"):
            return None
        target: str = workload.code.equal_work(self.target, random)  # pyright: ignore[reportOptionalMemberAccess]
        return target


@dataclass(frozen=True, slots=True)
class Workload:
    """What a contestant has to be able to do.

    Attributes:
        name: The file's name.
        case: The requests that are measured, each a table ``[[case]]``.
        order: Where it stands in lists; the lower first.
        noise_class: What its figures vary with: the machine's kernel and caches (``server``), or the
            work in the handler (``handler``).
        is_procedure: Whether it is a procedure, too, where a contestant has any; none takes parameters.
        messages: What its cases are messages of, which come back, if they are no requests.
        is_quick: False where a response takes milliseconds; checks of connections leave it out.
        is_optional: Whether it is no part of the contract: single experiments ask it of those that have it.
        expect: What the response has to be.
        code: The module beside the file, for what takes code.
    """

    name: str = field(metadata=NOT_A_KEY)
    case: tuple[Case, ...]
    order: int = 100
    noise_class: Literal["server", "handler"] = "server"
    is_procedure: bool = False
    messages: Literal["", "websocket", "webtransport"] = ""
    is_quick: bool = True
    is_optional: bool = False
    expect: Expect = Expect()
    code: ModuleType | None = field(default=None, metadata=NOT_A_KEY)

    def check(self, answer: Response, target: str) -> None:
        """Check a response to ``target``.

        Raises:
            WrongResponse: It is not the golden one.
        """
        self.expect.check(self.name, answer)
        if self.code is not None and hasattr(self.code, "check"):
            self.code.check(answer, target)


class Contract:
    """All workloads and cases that are known.

    Attributes:
        workloads: By name, in the order of lists.
        cases: By id, in the order of lists.
    """

    def __init__(self) -> None:
        self.workloads: dict[str, Workload] = {}
        self.cases: dict[str, Case] = {}

    def add(self, folder: Path) -> None:
        """Read every workload in ``folder``; a file replaces the workload that had its name.

        Raises:
            DefinitionError: A file cannot be read, or two workloads have a case of one name.
        """
        if not (paths := sorted(folder.glob("*.toml"))):
            raise DefinitionError(f"no workload in {folder}; expected files NAME.toml")
        self.add_workloads([read(path) for path in paths])

    def add_workloads(self, more: list[Workload]) -> None:
        """Add workloads, replacing those of the same names.

        Raises:
            DefinitionError: Two workloads have a case of one name.
        """
        by_name = self.workloads | {one.name: one for one in more}
        self.workloads = dict(sorted(by_name.items(), key=lambda item: (item[1].order, item[0])))
        self.cases = {}
        for case in (case for one in self.workloads.values() for case in one.case):
            if (other := self.cases.setdefault(case.id, case)) is not case:
                raise DefinitionError(
                    f"workloads {other.workload} and {case.workload}: both have a case {case.id!r}"
                )

    def cases_of(self, names: tuple[str, ...] | list[str]) -> list[Case]:
        """Return the cases of the named workloads, in the order of lists."""
        return [case for case in self.cases.values() if case.workload in names]

    def case_named(self, id: str) -> Case:
        """Return a case.

        Raises:
            DefinitionError: There is none of that name.
        """
        if id not in self.cases:
            raise DefinitionError(f"no case is called {id!r}; there are {', '.join(self.cases)}")
        return self.cases[id]


@cache
def contract() -> Contract:
    """Return the lab's workloads; further folders are added to this one object."""
    found = Contract()
    found.add(paths.folder("workloads"))
    return found


def read(path: Path) -> Workload:
    """Read one workload.

    Raises:
        DefinitionError: The file, or the code beside it, cannot be read.
    """
    name = path.stem
    workload = reader.convert(Workload, reader.read(path), path, name=name, code=_code(path))
    if not workload.case:
        raise DefinitionError(f"{path}: case: expected one table [[case]] or more, got none")
    for number, case in enumerate(workload.case):
        if case.is_varied and not hasattr(workload.code, "requests"):
            raise DefinitionError(
                f"{path}: case[{number}].is_varied: expected a function requests(random) in the code "
                "beside the file, got none"
            )
        if case.proved_by not in (None, *(other.id for other in workload.case)):
            raise DefinitionError(
                f"{path}: case[{number}].proved_by: {case.proved_by!r} is no case of this workload"
            )
        if case.mix and all(one.is_background for one in case.mix):
            raise DefinitionError(f"{path}: case[{number}].mix: nothing in it is to be measured")
    cases = (
        replace(case, workload=name, body=case.body * case.body_repeats) for case in workload.case
    )
    return replace(workload, case=tuple(cases))


def _code(path: Path) -> ModuleType | None:
    source = path.with_name(f"{path.stem.replace('-', '_')}.py")
    if not source.is_file():
        return None
    spec = importlib.util.spec_from_file_location(f"citius_lab_workload_{source.stem}", source)
    assert spec is not None, "it is a file of Python"
    assert spec.loader is not None, "it is a file of Python"
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise DefinitionError(f"{source}: {type(error).__name__}: {error}") from error
    return module


def code_of(name: str) -> Any:
    """Return the code of another of the lab's workloads, for one that has the same responses.

    Raises:
        DefinitionError: There is none, or it cannot be read.
    """
    code = _code(paths.folder("workloads") / f"{name}.toml")
    if code is None:
        raise DefinitionError(f"the workload {name} has no code beside it")
    return code


# --- what checks are made of ----------------------------------------------------------------------


def expect(what: str, expected: object, got: object) -> None:
    """Compare.

    Raises:
        WrongResponse: They differ.
    """
    if expected != got:
        raise WrongResponse(f"{what}: expected {short(expected)}, got {short(got)}")


def short(value: object) -> str:
    """Return a value as an error shows it."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def integer(what: str, body: bytes) -> int:
    """Return the number that is all of a response's content.

    Raises:
        WrongResponse: It is something else.
    """
    try:
        return int(body)
    except ValueError:
        raise WrongResponse(f"{what}: expected a number, got {short(body)}") from None
