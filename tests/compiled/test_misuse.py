"""Native code that breaks the rules of citius.h: 500 and a line in the log, and the server goes on."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import citius
import pytest
from citius import App, ConfigError, _core
from citius.testing import Client
from rig import Server

MISTAKES = {
    "returns_1": r"returned CITIUS_CLOSED: a channel is closed",
    "returns_minus_7": r"returned -7",
    "returns_302": r"returned 302",
    "absurd_status": r"status is 99; expected one from 200 to 599",
    "huge_status": r"status is 2000000000",
    "informational": r"status is 100",
    "splits_header": r"field value has a control byte",
    "splits_name": r"field name is not a token",
    "splits_type": r"field value has a control byte",
    "header_from_nowhere": r"adds a header from nowhere",
    "many_headers": r"headers are longer than 64 KiB",
    "wrong_length": r"body does not have the announced length",
    "param_beyond": r"asks for a path parameter that its route does not have",
    "counts_too_much": r"says that its body has (\d+) bytes, with room for (\d+)",
    "counts_far_too_much": r"body is longer than the room for it",
    "copies_response": r"passes a response that is not the one it was called with",
    "copies_request": r"passes a request that is not the one it was called with",
    "endless": r"longer than --compiled-body-bytes-max",
    "asks_for_everything": r"longer than --compiled-body-bytes-max",
}

OTHERS = ["sleeps", "passes_nothing", "loses_its_body", "has_gil", "hands_response_to_a_thread",
          "leaves_secrets", "counts_room", "counts_reserved", "writes_in_place", "reserves_much"]  # fmt: skip


@pytest.fixture(scope="module", params=["reactor", "pool"])
def server(request: pytest.FixtureRequest, misuse_path: Path, tmp_path_factory: Any):
    """All of them in one server, on the reactor's thread and in the pool."""
    directory = tmp_path_factory.mktemp("misuse")
    (directory / "main.py").write_text(
        "from citius import App, load_handlers\n"
        "app = App()\n"
        f"handlers = load_handlers({str(misuse_path)!r})\n"
        "@app.get('/alive')\n"
        "def alive(): return 'yes'\n"
        f"for name in {[*MISTAKES, *OTHERS]}:\n"
        "    app.get('/' + name, compiled=handlers[name], "
        f"pool={request.param == 'pool'})\n"
    )
    made = Server(["main.py", "--port", "0"], {}, directory).wait_ready()
    yield made
    made.kill()


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_500_and_in_the_log(server: Server, name: str) -> None:
    answer = server.get(f"/{name}")
    assert answer.status == 500
    assert "set-cookie" not in answer.headers
    assert "x-a" not in answer.headers
    what = rf"GET /{name}: the compiled handler {name}: .*{MISTAKES[name]}"
    server.wait_for_log(rf"{what}.*\[route /{name}, handler ")
    assert server.get("/alive").body == b"yes"


def test_null_pointers_are_refused(server: Server) -> None:
    assert server.get("/passes_nothing").status == 200


def test_a_body_pointer_that_is_changed_changes_nothing(server: Server) -> None:
    assert server.get("/loses_its_body").status == 200


@pytest.mark.parametrize("name", ["counts_room", "counts_reserved"])
def test_bytes_that_a_handler_counts_and_has_not_written_are_zeros(
    server: Server, name: str
) -> None:
    for _ in range(3):
        assert server.get("/leaves_secrets").body == b"S" * 1000
        body = server.get(f"/{name}").body
        assert body == bytes(len(body))
        assert body


def test_what_a_handler_writes_in_place_is_sent(server: Server) -> None:
    expected = b"begin," + b"".join(bytes([97 + i % 26]) * 100 for i in range(200))
    for _ in range(3):
        assert server.get("/writes_in_place").body == expected
        assert server.get("/leaves_secrets").status == 200


def test_a_response_is_refused_in_another_thread(server: Server) -> None:
    assert server.get("/hands_response_to_a_thread").body == b"500"
    assert server.get("/alive").body == b"yes"


def test_memory_that_an_answer_does_not_use_is_given_back(server: Server) -> None:
    def resident_kb() -> int:
        text = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
        found = re.search(r"^Rss:\s+(\d+) kB", text, re.M)
        assert found is not None
        return int(found[1])

    before = resident_kb()
    peers = [server.connect(receive_buffer_bytes=4096) for _ in range(4)]
    for peer in peers:
        peer.send(b"GET /reserves_much HTTP/1.1\r\nhost: x\r\n\r\n")
        assert peer.read(15) == b"HTTP/1.1 200 OK"
    # Each has at most 8 MB to be sent, of 60 MB that its handler has reserved.
    assert resident_kb() - before < 4 * 10_000
    for peer in peers:
        peer.close()


def test_the_pool_has_no_gil(server: Server, request: pytest.FixtureRequest) -> None:
    is_pool = request.node.callspec.params["server"] == "pool"
    assert server.get("/has_gil").body == (b"no" if is_pool else b"yes")


def test_whoever_keeps_the_reactor_is_named_once(server: Server, request: Any) -> None:
    is_pool = request.node.callspec.params["server"] == "pool"
    for _ in range(3):
        assert server.get("/sleeps?ms=40").status == 200
    server.get("/returns_1")  # what is logged before it is there when its line is
    server.wait_for_log("returned CITIUS_CLOSED")
    told = re.findall(r"handler sleeps: it kept the reactor's thread for (\d+) ms", server.err)
    assert len(told) == (0 if is_pool else 1)


def one(native: object, **limits: int) -> Client:
    app = App()
    app.get("/{a}/{b}", compiled=native)
    app.post("/{a}/{b}", compiled=native)
    return Client(app, limits=limits)


def test_statuses(misuse: citius.compiled.Handlers) -> None:
    answer = one(misuse["returns_418"]).get("/a/b")
    assert (answer.status_code, answer.text) == (418, "I'm a Teapot")
    answer = one(misuse["returns_409_with_body"]).get("/a/b")
    assert (answer.status_code, answer.text) == (409, "two of them")
    assert answer.headers["content-type"] == "text/plain"
    answer = one(misuse["no_content_with_body"]).get("/a/b")
    assert (answer.status_code, answer.content) == (204, b"")


def test_the_body_of_an_answer_is_bounded(misuse: citius.compiled.Handlers) -> None:
    client = one(misuse["endless"], compiled_body_bytes_max=1000)
    assert client.get("/a/b").status_code == 500
    # One that fits exactly does.
    assert (
        one(misuse["echo"], compiled_body_bytes_max=10).post("/a/b", content=b"").status_code == 500
    )
    assert (
        one(misuse["echo"], compiled_body_bytes_max=15).post("/a/b", content=b"").status_code == 200
    )


def test_numbers_are_those_of_json(misuse: citius.compiled.Handlers) -> None:
    texts = one(misuse["numbers"]).get("/a/b").text.split()
    reals = [0.0, -0.0, 0.1, 1e16, 1e-7, 123456789.25, 5e-324, 1.7976931348623157e308, 3.0]
    assert [float(text) for text in texts[:9]] == reals
    assert texts[1] == "-0.0"
    assert texts[9:] == ["null", str(-(2**63))]


def test_everything_of_a_request_is_seen(misuse_module: ModuleType) -> None:
    client = one(misuse_module.capsule())
    answer = client.post(
        "/x%2Fy/%C3%A9?z=1&q=no&q=a+b%26", content=[b"bo", b"dy"], headers={"x-what": "this"}
    )
    assert answer.content == "POST /x%2Fy/%C3%A9 z=1&q=no&q=a+b%26|x/y|é|this|a b&|body".encode()
    assert answer.headers["content-type"] == "application/octet-stream"
    large = bytes(range(256)) * 4000
    assert client.post("/a/b", content=large).content == b"POST /a/b |a|b|" + large


def test_head_is_get_without_its_body(misuse: citius.compiled.Handlers) -> None:
    answer = one(misuse["echo"]).head("/a/b")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "15"


def test_the_table_and_the_structs_are_those_of_the_header(misuse_module: ModuleType) -> None:
    version, _, size = misuse_module.imported()
    request, arguments_at, response, value, api = misuse_module.layout()
    assert (version, size) == (_core.C_ABI_VERSION, api)
    assert (request, response, value) == (104, 40, 16)
    numba = pytest.importorskip("citius.web.execution.numba_handlers")
    assert (arguments_at, value) == (numba._ARGUMENTS_AT, numba._VALUE_BYTES)


@pytest.mark.parametrize(
    ("native", "message"),
    [
        (1.5, "compiled= takes True"),
        (2**70, "is not the address of code in this process"),
        (4096, "is not the address of code in this process"),
        (SimpleNamespace(address=2**70), "is not the address of code in this process"),
        pytest.param(id(citius), "is not the address of code in this process", id="data"),
        (0, "a positive number"),
        (-5, "a positive number"),
        (ctypes.c_int(3), "compiled= takes True"),
        (_core._C_API, "is no handler; expected 'citius.handler.2'"),
    ],
)
def test_what_is_no_handler_is_refused(native: object, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        App().get("/", compiled=native)


def test_a_whole_library_is_refused(tmp_path: Path, compile_c: Callable[..., Path]) -> None:
    source = Path(__file__).with_name("misuse.c")
    library = citius.load_handlers(compile_c(source, tmp_path / "misuse.so"))
    with pytest.raises(
        ConfigError, match=r'compiled= \(.*test_misuse\.py:\d+\): .*compiled=handlers\["name"\]'
    ):
        App().get("/", compiled=library)


def test_a_capsule_of_another_version_is_refused() -> None:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = (
        ctypes.py_object,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
    )
    capsule = new(4096, name := b"citius.handler.3", None)
    with pytest.raises(ConfigError, match="made with another version of citius.h"):
        App().get("/", compiled=capsule)
    del capsule, name


def test_libraries_that_are_none(tmp_path: Path, compile_c: Callable[..., Path]) -> None:
    with pytest.raises(ConfigError, match="cannot be loaded"):
        citius.load_handlers(tmp_path / "nothing.so")
    (tmp_path / "old.c").write_text("const unsigned citius_abi_version = 99;")
    with pytest.raises(ConfigError, match="made with version 99"):
        citius.load_handlers(compile_c(tmp_path / "old.c", tmp_path / "old.so"))
    (tmp_path / "strange.c").write_text("int strange;")
    with pytest.raises(ConfigError, match="does not say which version"):
        citius.load_handlers(compile_c(tmp_path / "strange.c", tmp_path / "strange.so"))


VERSION_1 = """
#include "citius_v1.h"
CITIUS_LIBRARY
int hello(const citius_request *request, citius_response *response) {
    citius_text name = {NULL, 0};
    int code = citius_param(request, 0, &name);
    citius_print(response, "Hello, ");
    citius_print_integer(response, CITIUS_ABI_VERSION);
    return code != CITIUS_OK ? code : citius_write(response, name.data, name.size);
}
"""

MODULE_OF_VERSION_1 = """
#include <Python.h>
#include "citius_v1.h"
static int hello(const citius_request *request, citius_response *response) {
    return citius_print(response, request->api->size >= sizeof(citius_api) ? "old" : "short");
}
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "old", NULL, -1, NULL, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_old(void) {
    PyObject *module;
    if (citius_import() == NULL) {
        return NULL;
    }
    module = PyModule_Create(&definition);
    PyModule_AddObject(module, "hello", citius_handler_capsule(hello));
    return module;
}
"""


@pytest.mark.parametrize("serial", [False, True])
def test_handlers_built_for_version_1_are_served(
    compile_c: Callable[..., Path], tmp_path: Path, serial: bool
) -> None:
    headers = f"-I{Path(__file__).parent}"
    (tmp_path / "old_library.c").write_text(VERSION_1)
    library = compile_c(tmp_path / "old_library.c", tmp_path / "old_library.so", headers)
    (tmp_path / "old.c").write_text(MODULE_OF_VERSION_1)
    module_path = compile_c(tmp_path / "old.c", tmp_path / "old.so", headers)
    spec = importlib.util.spec_from_file_location("old", module_path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    app = App()
    app.get("/library/{name}", compiled=citius.load_handlers(library)["hello"], serial=serial)
    app.get("/module", compiled=module.hello, serial=serial)
    client = Client(app)
    assert client.get("/library/x").text == "Hello, 1x"
    assert client.get("/module").text == "old"


def test_a_function_that_a_library_lacks_is_named(misuse: citius.compiled.Handlers) -> None:
    with pytest.raises(ConfigError, match="has no function 'classify'"):
        misuse["classify"]
    # The C library has one of this name.
    with pytest.raises(ConfigError, match="has no function 'index'"):
        misuse["index"]


def test_options_that_contradict_each_other(misuse: citius.compiled.Handlers) -> None:
    with pytest.raises(ConfigError, match="drop stream, or add serial=True"):
        App().get("/", compiled=misuse["echo"], stream=True)
    with pytest.raises(ConfigError, match="not compiled"):
        App().get("/", pool=True)


def test_middleware_sees_what_native_code_answers(misuse: citius.compiled.Handlers) -> None:
    app = App()
    app.post("/echo/{x}", compiled=misuse["echo"])
    app.get("/pooled", compiled=misuse["has_gil"], pool=True)
    app.get("/wrong", compiled=misuse["returns_1"])

    @app.middleware
    def mark(request: Any, next: Any) -> Any:
        if request.header("authorization") is None:
            return citius.Response("who are you?", 401)
        return next(request)

    client = Client(app, raise_errors=False)
    assert client.post("/echo/1", content=b"body").status_code == 401
    said = {"authorization": "me"}
    assert client.post("/echo/1", content=b"body", headers=said).text == "POST /echo/1 |1|body"
    assert client.get("/pooled", headers=said).text == "no"
    assert client.get("/wrong", headers=said).status_code == 500
