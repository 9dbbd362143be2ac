"""``Uploads``: the routes of resumable uploads, by two protocols at one path.

draft-ietf-httpbis-resumable-upload-11 (interop version 8) for requests with ``Upload-Complete`` or
``application/partial-upload``; tus 1.0 for those with ``Tus-Resumable``. A POST of neither is a conventional
upload. Clients of the draft that say their interop version are told where their upload is before it has come
(104). The application's function is called when all bytes are there, in the request that has brought the last
ones, and once: with the file's lock held. Tests: ``tests/uploads/``.
"""

from __future__ import annotations

import inspect
import os
import time
from contextlib import suppress
from dataclasses import replace
from email.utils import formatdate
from functools import update_wrapper
from typing import TYPE_CHECKING, Annotated, Any, Final, cast
from urllib.parse import quote

from citius._core import Request, Response
from citius.errors import ClientDisconnected, ConfigError, HTTPError, NotFound
from citius.web.declarations.checks import describe
from citius.web.declarations.generic_signatures import signature_of
from citius.web.declarations.parameters.sources import Depends
from citius.web.execution.background import to_its_end
from citius.web.responses.declared.other_results import result_filter
from citius.web.routing.declared_routes import Route, declare
from citius.web.security.owners import owner_text
from citius.web.uploads.concatenation import FINAL, PARTIAL, joined, parts_of, size_of
from citius.web.uploads.fields import (
    ALGORITHMS,
    base_name,
    boolean,
    checksum_of,
    filename_of,
    integer,
    metadata_of,
)
from citius.web.uploads.mistakes import TUS, Wrong, is_tus_of, refusal, with_field
from citius.web.uploads.store import Appender, Complete, LetGo, UploadDirectory, UploadRecord
from citius.web.uploads.upload import Upload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

INTEROP_VERSIONS: Final = (6, 7, 8)
"""The versions of the draft whose fields are those of draft 11: clients of draft 5 say 6."""

_EXTENSIONS = (
    "creation,creation-with-upload,creation-defer-length,termination,checksum,expiration,"
    "concatenation"
)
_OWNER = "citius_upload_owner"
_PROBLEMS = "https://iana.org/assignments/http-problem-types#"


def _upload(request: Request) -> Upload:
    return Upload(request)


class Uploads:
    """The uploads of one declaration; ``Router.uploads`` makes it."""

    def __init__(
        self,
        pattern: str,
        handler: Callable[..., Any],
        store: UploadDirectory,
        *,
        owner: Callable[..., Any] | None,
        size_max: int,
        age_s: float,
        options: dict[str, Any],
    ) -> None:
        self._pattern = pattern
        self._handler = handler
        self._store = store
        self._owner = owner
        self._size_max = size_max
        self._age_s = age_s
        self._options = options
        self._what = f"app.uploads({pattern!r})"
        if not inspect.iscoroutinefunction(handler):
            raise ConfigError(f"{self._what}: {describe(handler)} is no `async def`; make it one")
        if "{upload}" in pattern or "{upload:" in pattern:
            raise ConfigError(
                f"{self._what}: {{upload}} is the identifier of an upload; rename the parameter"
            )
        self._signature = signature_of(handler)
        taken = [name for name, p in self._signature.parameters.items() if p.annotation is Upload]
        if len(taken) != 1:
            raise ConfigError(
                f"{self._what}: expected one parameter of {describe(handler)} to be annotated with Upload"
            )
        self._parameter = taken[0]
        self._keep: Callable[[Any], Any] | None = None

    # --- declaring --------------------------------------------------------------------------------------

    def routes(self) -> list[Route]:
        """The routes."""
        own = {**self._options, "stream": True, "body_bytes_max": self._size_max}
        options: dict[str, Any] = {
            "dependencies": self._options["dependencies"],
            "tags": self._options["tags"],
            "include_in_schema": False,
        }
        name = self._options.get("name") or getattr(self._handler, "__name__", "upload")
        pattern = ("" if self._pattern == "/" else self._pattern) + "/{upload}"
        begin = declare(self._pattern, self._taking(self._begin), cast("Any", own))
        part = {**own, "name": f"{name}.append", "include_in_schema": False}
        found = [
            replace(begin, method="POST", kind="async"),
            replace(
                declare(pattern, self._taking(self._append), cast("Any", part)),
                method="PATCH",
                kind="async",
            ),
        ]
        look = {**options, "name": f"{name}.offset"}
        made = declare(pattern, self._taking(self._look), cast("Any", look))
        found += [replace(made, method=method, kind="async") for method in ("HEAD", "GET")]
        cancel = {**options, "name": f"{name}.cancel"}
        made = declare(pattern, self._taking(self._cancel), cast("Any", cancel))
        found.append(replace(made, method="DELETE", kind="async"))
        for path in (self._pattern, pattern):
            # Without dependencies: it is asked before there is anyone to know.
            about: Any = {"include_in_schema": False, "name": f"{name}.options"}
            found.append(replace(declare(path, self._about, about), method="OPTIONS"))
        return found

    def _owner_parameter(self) -> list[inspect.Parameter]:
        if self._owner is None:
            return []
        annotation = Annotated[Any, Depends(self._owner)]
        return [inspect.Parameter(_OWNER, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)]

    def _taking(
        self,
        call: Callable[[Request, str, Callable[[Upload], Awaitable[Any]]], Awaitable[Response]],
    ) -> Callable[..., Any]:
        """A handler with the parameters of the application's function, which it may call."""
        function, signature, name = self._handler, self._signature, self._parameter

        async def handler(*args: Any, **named: Any) -> Response:
            owner = self._digest_of(named.pop(_OWNER, None))
            bound = signature.bind(*args, **named)
            request: Request = bound.arguments[name].request

            async def finish(upload: Upload) -> Any:
                bound.arguments[name] = upload
                return await function(*bound.args, **bound.kwargs)

            try:
                return await call(request, owner, finish)
            except Wrong as error:
                return refusal(request, error)

        update_wrapper(handler, function)
        parameters = [
            p.replace(annotation=Annotated[Upload, Depends(_upload, cached=False)])
            if p.name == name
            else p
            for p in signature.parameters.values()
        ]
        made: Any = handler
        made.__signature__ = signature.replace(
            parameters=[*parameters, *self._owner_parameter()], return_annotation=Response
        )
        made.citius_uploads = self
        return handler

    def open(self) -> None:
        """Make the directory, and know what is sent of results, when the application is frozen.

        Raises:
            ConfigError: It cannot be made, or the declared result does not say which fields are sent.
        """
        self._keep = result_filter(self._handler, "the function of uploads")
        try:
            self._store.open()
        except OSError as error:
            raise ConfigError(f"{self._what}: the directory cannot be used: {error}") from None

    def _digest_of(self, owner: object) -> str:
        if self._owner is None:
            return ""
        if owner is None:
            raise HTTPError(401, "who uploads is not known")
        return owner_text(owner, self._what)

    # --- requests -----------------------------------------------------------------------------------------

    async def _begin(
        self, request: Request, owner: str, finish: Callable[[Upload], Awaitable[Any]]
    ) -> Response:
        is_tus = is_tus_of(request)
        concat = (request.header("upload-concat") or "").strip() if is_tus else ""
        if concat.startswith(FINAL):
            return await self._join(request, owner, finish, concat)
        if concat not in ("", PARTIAL):
            raise self._wrong(request, 400, f"Upload-Concat: expected {PARTIAL}, or {FINAL}URL URL")
        complete = True if is_tus else boolean(request.header("upload-complete"))
        said = self._length(request, 0, complete=complete is not False, is_tus=is_tus)
        if is_tus and said is None and request.header("upload-defer-length") != "1":
            raise self._wrong(request, 400, "expected Upload-Length, or Upload-Defer-Length: 1")
        if said is not None and said > self._size_max:
            raise self._wrong(request, 413, f"an upload may have {self._size_max} bytes")
        record = UploadRecord("", request.path, said, concat=concat)
        self._describe(request, record, is_tus=is_tus)
        self._store.create(owner, record)
        is_whole = not is_tus and complete is not False
        is_told = self._tell(request, record)
        try:
            return await self._take(request, owner, record, finish, 0, complete=is_whole)
        except BaseException:
            if not is_told:
                # Its client does not know where it is.
                self._store.remove(owner, record)
            raise

    async def _join(
        self, request: Request, owner: str, finish: Callable[[Upload], Awaitable[Any]], concat: str
    ) -> Response:
        """The response to a final upload, which is put together from partial ones."""
        if request.header("upload-length") is not None:
            raise self._wrong(request, 400, "a final upload has the length of its parts")
        try:
            parts = parts_of(concat, request.path, owner, self._store)
            size = size_of(parts)
            if size > self._size_max:
                raise HTTPError(413, f"an upload may have {self._size_max} bytes")
            record = UploadRecord("", request.path, size, concat=concat)
            self._describe(request, record, is_tus=True)
            self._store.create(owner, record)
        except HTTPError as error:
            raise self._wrong(request, error.status_code, error.detail or "") from None
        try:
            async with joined(self._store, owner, record, parts):
                response = await self._finished(request, owner, record, finish, size)
        except LetGo:
            self._store.remove(owner, record)
            raise self._wrong(request, 409, "another request of a part has come") from None
        except BaseException:
            self._store.remove(owner, record)
            raise
        for part in parts if response.status_code < 400 else ():
            self._store.remove(owner, part)
        return response

    def _tell(self, request: Request, record: UploadRecord) -> bool:
        """Tell a client where its upload is, while its bytes come; ``False`` if it does not want to know.

        Clients that know nothing of interim responses 104 may fail at one.
        """
        said = integer(request.header("upload-draft-interop-version"))
        is_draft = request.header("upload-complete") is not None and not is_tus_of(request)
        if not is_draft or said not in INTEROP_VERSIONS:
            return False
        request._inform(  # pyright: ignore[reportPrivateUsage]
            104,
            {
                "upload-draft-interop-version": str(said),
                "location": self._place(request, record),
                "upload-limit": self._limits(record),
            },
        )
        return True

    def _place(self, request: Request, record: UploadRecord) -> str:
        path = quote(request.path.rstrip("/"))
        return f"{request.root_path}{path}/{record.id}"

    async def _append(
        self, request: Request, owner: str, finish: Callable[[Upload], Awaitable[Any]]
    ) -> Response:
        record = self._found(request, owner)
        is_tus = is_tus_of(request)
        if record.concat.startswith(FINAL):
            raise self._wrong(request, 403, "a final upload has the bytes of its parts")
        wanted = "application/offset+octet-stream" if is_tus else "application/partial-upload"
        if (request.header("content-type") or "").partition(";")[0].strip().lower() != wanted:
            raise self._wrong(request, 415, f"expected Content-Type: {wanted}")
        offset = integer(request.header("upload-offset"))
        if offset is None:
            raise self._wrong(request, 400, "expected Upload-Offset")
        complete = False if is_tus else boolean(request.header("upload-complete"))
        if complete is None:
            raise self._wrong(request, 400, "expected Upload-Complete")
        return await self._take(request, owner, record, finish, offset, complete=complete)

    async def _take(
        self,
        request: Request,
        owner: str,
        record: UploadRecord,
        finish: Callable[[Upload], Awaitable[Any]],
        offset: int,
        *,
        complete: bool,
    ) -> Response:
        """Append the body of a request; the response, of the application if that was all."""
        is_tus = is_tus_of(request)
        try:
            async with self._store.taken(owner, record) as fd:
                checksum = self._checksum(request) if is_tus else None
                appender = Appender(fd, checksum and checksum[0], self._store.check_space)
                if appender.offset != offset:
                    raise self._mismatch(request, appender.offset, offset)
                said = self._length(request, offset, complete=complete, is_tus=is_tus)
                if said is not None and (said < offset or record.length not in (None, said)):
                    raise self._wrong(
                        request, 400, "inconsistent length values for upload",
                        {"upload-complete": "?0"}, type="inconsistent-upload-length",
                    )  # fmt: skip
                if said is not None and record.length is None:
                    record.length = said
                    if said > self._size_max:
                        raise self._wrong(
                            request, 413, f"an upload may have {self._size_max} bytes"
                        )
                    self._store.check_space(said - offset)
                    self._store.save(owner, record)
                await self._receive(request, owner, record, appender, checksum)
                is_all = complete or (is_tus and appender.offset == record.length)
                if not is_all or record.concat == PARTIAL:
                    return self._appended(request, record, appender.offset)
                if record.length is not None and appender.offset != record.length:
                    # The client has left, or has said another length.
                    raise self._wrong(
                        request, 400, "the upload is not complete", {"upload-complete": "?0"}
                    )
                return await self._finished(request, owner, record, finish, appender.offset)
        except Complete:
            fields = {"upload-complete": "?0", "upload-offset": str(record.length)}
            raise self._wrong(
                request, 409 if is_tus else 400, "the upload is complete", fields
            ) from None
        except LetGo:
            raise self._wrong(request, 409, "another request of this upload has come") from None

    async def _receive(
        self,
        request: Request,
        owner: str,
        record: UploadRecord,
        appender: Appender,
        checksum: tuple[str, bytes] | None,
    ) -> None:
        """Write the body of a request; of one that breaks off what has come."""
        most = self._size_max if record.length is None else record.length
        try:
            async for piece in request.stream():
                if appender.offset + len(piece) > most:
                    appender.flush()
                    self._store.remove(owner, record)
                    raise self._wrong(request, 413, f"the upload has more than {most} bytes")
                await appender.add(bytes(piece))
            if checksum is not None and not appender.has_digest(checksum[1]):
                appender.undo()
                raise self._wrong(request, 460, "the checksum does not match")
        except ClientDisconnected:
            if checksum is not None:
                appender.undo()
            appender.flush()
            raise
        except BaseException:
            if checksum is not None:
                appender.undo()
            with suppress(HTTPError):
                appender.flush()
            raise
        appender.flush()

    async def _finished(
        self,
        request: Request,
        owner: str,
        record: UploadRecord,
        finish: Callable[[Upload], Awaitable[Any]],
        size: int,
    ) -> Response:
        """Hand a complete upload to the application; its response."""
        upload = Upload(request)
        place = self._store.file(owner, record)
        upload.fill(record, place, size)

        async def hand_over() -> Response:
            try:
                value = await finish(upload)
                value = value if self._keep is None else self._keep(value)
                response = Response(b"", 204) if value is None else request._own(value)  # pyright: ignore[reportPrivateUsage]
            except Exception as error:
                # It has not been taken; a client that asks again begins anew. One that was cut off stays.
                self._store.remove(owner, record)
                if isinstance(error, HTTPError) and request.header("upload-complete") is not None:
                    raise with_field(error, "upload-complete", "?1") from None
                raise
            if response.status_code >= 400:
                self._store.remove(owner, record)
            else:
                self._store.finish(owner, record, size)
            return response

        async with self._store.handed(record):
            response = await to_its_end(request, hand_over, self._what)
        if not is_tus_of(request):
            if request.header("upload-complete") is not None:
                response.headers["upload-complete"] = "?1"
                response.headers["upload-offset"] = str(size)
            return response
        if response.status_code >= 400:
            response.headers["tus-resumable"] = TUS
            return response
        return self._appended(request, record, size)

    def _appended(self, request: Request, record: UploadRecord, offset: int) -> Response:
        """The response to a part."""
        is_new = request.method == "POST"
        fields = {"upload-offset": str(offset)}
        if is_new:
            fields["location"] = self._place(request, record)
        if is_tus_of(request):
            expires = formatdate(self._store.expires_at(record), usegmt=True)
            fields |= {"tus-resumable": TUS, "upload-expires": expires}
        else:
            fields |= {"upload-complete": "?0", "upload-limit": self._limits(record)}
        return Response(b"", 201 if is_new else 204, fields)

    async def _look(
        self, request: Request, owner: str, finish: Callable[[Upload], Awaitable[Any]]
    ) -> Response:
        """How an upload stands."""
        record = self._found(request, owner)
        is_tus = is_tus_of(request)
        offset = self._store.offset(owner, record)
        if not record.is_complete:
            try:
                # A request that appends lets go, so that the offset stays as it is.
                async with self._store.taken(owner, record) as fd:
                    offset = os.fstat(fd).st_size
                    if is_tus and offset == record.length and record.concat != PARTIAL:
                        # The worker ended before the application had it; the client takes it for done.
                        done = await self._finished(request, owner, record, finish, offset)
                        if done.status_code >= 400:
                            return done
            except Complete:
                offset = record.length or 0
            except LetGo:
                raise self._wrong(request, 409, "another request of this upload has come") from None
        fields = {"upload-offset": str(offset), "cache-control": "no-store"}
        if record.length is not None:
            fields["upload-length"] = str(record.length)
        if is_tus:
            fields["tus-resumable"] = TUS
            fields["upload-expires"] = formatdate(self._store.expires_at(record), usegmt=True)
            if record.length is None:
                fields["upload-defer-length"] = "1"
            if record.concat:
                fields["upload-concat"] = record.concat
            if record.raw_metadata:
                fields["upload-metadata"] = record.raw_metadata
            return Response(b"", 200, fields)
        fields["upload-complete"] = "?1" if record.is_complete else "?0"
        fields["upload-limit"] = self._limits(record)
        return Response(b"", 204, fields)

    async def _cancel(
        self, request: Request, owner: str, finish: Callable[[Upload], Awaitable[Any]]
    ) -> Response:
        """Forget an upload. What the function takes, such as who calls, is asked here, too."""
        record = self._found(request, owner)
        if not record.is_complete:
            try:
                async with self._store.taken(owner, record):
                    self._store.remove(owner, record)
            except Complete:
                pass
            except LetGo:
                raise self._wrong(request, 409, "another request of this upload has come") from None
        self._store.remove(owner, record)
        return Response(b"", 204, {"tus-resumable": TUS} if is_tus_of(request) else {})

    async def _about(self, request: Request) -> Response:
        """What a client may do."""
        fields = {
            "tus-resumable": TUS, "tus-version": TUS, "tus-extension": _EXTENSIONS,
            "tus-max-size": str(self._size_max), "tus-checksum-algorithm": ",".join(ALGORITHMS),
            "upload-limit": self._limits(None), "accept-patch": "application/partial-upload",
        }  # fmt: skip
        return Response(b"", 204, fields)

    # --- what they share ------------------------------------------------------------------------------------

    def _found(self, request: Request, owner: str) -> UploadRecord:
        path, _, identifier = request.path.rpartition("/")
        record = self._store.find(owner, identifier, path or "/")
        if record is None:
            if is_tus_of(request, check=False):
                raise self._wrong(request, 404, "there is no such upload")
            raise NotFound("there is no such upload")
        return record

    def _length(self, request: Request, offset: int, *, complete: bool, is_tus: bool) -> int | None:
        """How long the upload is, as far as a request says."""
        said = integer(request.header("upload-length"))
        content = integer(request.header("content-length"))
        if is_tus or not complete or content is None:
            return said
        whole = offset + content
        if said is not None and said != whole:
            raise self._wrong(
                request, 400, "inconsistent length values for upload",
                {"upload-complete": "?0"}, type="inconsistent-upload-length",
            )  # fmt: skip
        return whole

    def _describe(self, request: Request, record: UploadRecord, *, is_tus: bool) -> None:
        """Keep what a client says of its file."""
        if not is_tus:
            record.content_type = request.header("content-type") or record.content_type
            record.filename = filename_of(request.header("content-disposition") or "")
            return
        raw = request.header("upload-metadata") or ""
        record.raw_metadata = raw
        try:
            record.metadata = metadata_of(raw)
        except ValueError as error:
            raise self._wrong(request, 400, f"Upload-Metadata: {error}") from None
        named = record.metadata.get("filename") or record.metadata.get("name") or ""
        record.filename = base_name(named)
        record.content_type = (
            record.metadata.get("filetype") or record.metadata.get("type") or record.content_type
        )

    def _checksum(self, request: Request) -> tuple[str, bytes] | None:
        given = request.header("upload-checksum")
        if given is None:
            return None
        found = checksum_of(given)
        if found is None:
            raise self._wrong(
                request, 400, f"Upload-Checksum: expected one of {', '.join(ALGORITHMS)}"
            )
        return found

    def _limits(self, record: UploadRecord | None) -> str:
        age = self._age_s
        if record is not None:
            age = max(0.0, self._store.expires_at(record) - time.time())
        return f"max-size={self._size_max}, max-age={int(age)}"

    def _mismatch(self, request: Request, expected: int, provided: int) -> Wrong:
        fields = {"upload-offset": str(expected), "upload-complete": "?0"}
        more = {"expected-offset": expected, "provided-offset": provided}
        text = "offset from request does not match offset of resource"
        return self._wrong(request, 409, text, fields, type="mismatching-upload-offset", **more)

    def _wrong(
        self,
        request: Request,
        status: int,
        detail: str,
        fields: dict[str, str] | None = None,
        *,
        type: str = "",
        **more: object,
    ) -> Wrong:
        """What a client is told that has made a mistake."""
        fields = dict(fields or {})
        if is_tus_of(request, check=False):
            fields["tus-resumable"] = TUS
        elif status == 413:
            fields["upload-limit"] = self._limits(None)
        error = Wrong(status, detail, fields)
        if type:
            error.members = {"type": _PROBLEMS + type, **more}
        return error
