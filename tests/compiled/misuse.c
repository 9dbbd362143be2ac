/* Handlers that do what none should; tests/compiled/test_misuse.py says what comes of each. */
#include <Python.h>
#include <citius.h>
#include <pthread.h>
#include <unistd.h>

CITIUS_LIBRARY

int returns_1(const citius_request *q, citius_response *r) { (void)q; (void)r; return 1; }
int returns_minus_7(const citius_request *q, citius_response *r) { (void)q; (void)r; return -7; }
int returns_302(const citius_request *q, citius_response *r) { (void)q; (void)r; return 302; }
int returns_418(const citius_request *q, citius_response *r) { (void)q; (void)r; return 418; }
int returns_409_with_body(const citius_request *q, citius_response *r) {
    (void)q;
    citius_content_type(r, "text/plain");
    citius_print(r, "two of them");
    return 409;
}
int absurd_status(const citius_request *q, citius_response *r) { (void)q; r->status = 99; return 0; }
int huge_status(const citius_request *q, citius_response *r) { (void)q; r->status = 2000000000; return 0; }
int informational(const citius_request *q, citius_response *r) { (void)q; r->status = 100; return 0; }
int no_content_with_body(const citius_request *q, citius_response *r) {
    (void)q;
    r->status = 204;
    return citius_print(r, "there is none");
}
int splits_header(const citius_request *q, citius_response *r) {
    (void)q;
    citius_add_header(r, "x-a", "b\r\nset-cookie: c"); /* what it returns is ignored */
    return citius_print(r, "done");
}
int splits_name(const citius_request *q, citius_response *r) {
    (void)q;
    return citius_add_header(r, "x-a: b\r\nx-c", "d");
}
int splits_type(const citius_request *q, citius_response *r) {
    (void)q;
    citius_content_type(r, "text/plain\r\nx-a: b");
    return 0;
}
int many_headers(const citius_request *q, citius_response *r) {
    (void)q;
    for (int i = 0; i < 100000; i++) {
        citius_add_header(r, "x-again", "and again");
    }
    return 0;
}
int wrong_length(const citius_request *q, citius_response *r) {
    (void)q;
    citius_add_header(r, "content-length", "5");
    return citius_print(r, "longer than five");
}
int param_beyond(const citius_request *q, citius_response *r) {
    citius_text text;
    (void)r;
    citius_param(q, 7, &text);
    return 0;
}
int counts_too_much(const citius_request *q, citius_response *r) {
    (void)q;
    r->size = r->room + 1;
    return 0;
}
int counts_far_too_much(const citius_request *q, citius_response *r) {
    (void)q;
    r->size = (size_t)-1;
    return citius_print(r, "x");
}
int loses_its_body(const citius_request *q, citius_response *r) {
    (void)q;
    r->body = NULL;
    r->room = (size_t)-1;
    r->size = 3;
    return 0;
}
int copies_response(const citius_request *q, citius_response *r) {
    (void)q;
    citius_response copy = *r;
    citius_print_integer(&copy, 7); /* what it returns is ignored */
    return 0;
}
int copies_request(const citius_request *q, citius_response *r) {
    (void)r;
    citius_request copy = *q;
    citius_text text;
    citius_header(&copy, "host", &text);
    return 0;
}
static void *prints_in_a_thread(void *response) {
    return (void *)(intptr_t)citius_print_integer((citius_response *)response, 7);
}
int hands_response_to_a_thread(const citius_request *q, citius_response *r) {
    (void)q;
    pthread_t thread;
    void *code = NULL;
    if (pthread_create(&thread, NULL, prints_in_a_thread, r) != 0 || pthread_join(thread, &code) != 0) {
        return 500;
    }
    return citius_print_integer(r, (int64_t)(intptr_t)code);
}
int leaves_secrets(const citius_request *q, citius_response *r) {
    (void)q;
    if (citius_reserve(r, 9000) != 0) {
        return 500;
    }
    memset(r->body, 'S', 9000); /* counted: the first thousand only */
    r->size = 1000;
    return 0;
}
int counts_room(const citius_request *q, citius_response *r) {
    (void)q;
    r->size = r->room;
    return 0;
}
int counts_reserved(const citius_request *q, citius_response *r) {
    (void)q;
    int code = citius_reserve(r, 9000);
    r->size = r->room;
    return code;
}
int writes_in_place(const citius_request *q, citius_response *r) {
    (void)q;
    int code = citius_print(r, "begin,");
    for (int i = 0; i < 200 && code == 0; i++) {
        code = citius_reserve(r, 100);
        memset(r->body + r->size, 'a' + i % 26, 100);
        r->size += 100;
    }
    return code;
}
int reserves_much(const citius_request *q, citius_response *r) {
    (void)q;
    if (citius_reserve(r, 60000000) != 0) {
        return 500;
    }
    memset(r->body, 'x', 8000000); /* more than the kernel takes of one socket */
    r->size = 8000000;
    return 0;
}
int endless(const citius_request *q, citius_response *r) {
    (void)q;
    while (citius_print(r, "0123456789abcdef0123456789abcdef") == 0) {
    }
    return 0;
}
int asks_for_everything(const citius_request *q, citius_response *r) {
    (void)q;
    return citius_reserve(r, (size_t)-1);
}
int header_from_nowhere(const citius_request *q, citius_response *r) {
    (void)q;
    return r->api->add_header(r, NULL, 3, "x", 1) == 500 ? 0 : 418;
}
int passes_nothing(const citius_request *q, citius_response *r) {
    citius_text text;
    int code = 0;
    code |= q->api->header(q, NULL, 3, &text) == 500 ? 0 : 2;
    code |= q->api->query(q, "a", 1, NULL) == 404 ? 0 : 4;
    code |= q->api->param(NULL, 0, &text) == 500 ? 0 : 8;
    code |= r->api->reserve(NULL, 1) == 500 ? 0 : 16;
    r->status = 200 + code;
    return 0;
}
int sleeps(const citius_request *q, citius_response *r) {
    int64_t ms;
    int code = citius_query_integer(q, "ms", 50, &ms);
    if (code == 0) {
        usleep((useconds_t)ms * 1000);
    }
    return code ? code : citius_print_integer(r, ms);
}
int has_gil(const citius_request *q, citius_response *r) {
    (void)q;
    return citius_print(r, PyGILState_Check() ? "yes" : "no");
}
int numbers(const citius_request *q, citius_response *r) {
    (void)q;
    double reals[] = {0.0, -0.0, 0.1, 1e16, 1e-7, 123456789.25, 5e-324, 1.7976931348623157e308, 3.0};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) {
        citius_print_real(r, reals[i]);
        citius_print(r, " ");
    }
    citius_print_real(r, 0.0 / 0.0);
    citius_print(r, " ");
    return citius_print_integer(r, INT64_MIN);
}
int echo(const citius_request *q, citius_response *r) {
    citius_text text;
    citius_write(r, q->method.data, q->method.size);
    citius_print(r, " ");
    citius_write(r, q->path.data, q->path.size);
    citius_print(r, " ");
    citius_write(r, q->query.data, q->query.size);
    for (size_t i = 0; i < q->params_count; i++) {
        citius_print(r, "|");
        citius_write(r, q->params[i].data, q->params[i].size);
    }
    if (citius_header(q, "X-What", &text) == 0) {
        citius_print(r, "|");
        citius_write(r, text.data, text.size);
    }
    if (citius_query(q, "q", &text) == 0) {
        citius_print(r, "|");
        citius_write(r, text.data, text.size);
    }
    citius_print(r, "|");
    return citius_write(r, q->body.data, q->body.size);
}

/* The module part: capsules, and what the header says of structs. */
static PyObject *capsule(PyObject *self, PyObject *args) {
    (void)self;
    (void)args;
    return citius_handler_capsule(&echo);
}
static PyObject *imported(PyObject *self, PyObject *args) {
    (void)self;
    (void)args;
    const citius_api *api = citius_import();
    return api == NULL ? NULL : Py_BuildValue("(IIn)", api->version, api->minor, (Py_ssize_t)api->size);
}
static PyObject *layout(PyObject *self, PyObject *args) {
    (void)self;
    (void)args;
    return Py_BuildValue(
        "(nnnnn)", (Py_ssize_t)sizeof(citius_request), (Py_ssize_t)offsetof(citius_request, arguments),
        (Py_ssize_t)sizeof(citius_response), (Py_ssize_t)sizeof(citius_value), (Py_ssize_t)sizeof(citius_api));
}
static PyMethodDef methods[] = {{"capsule", capsule, METH_NOARGS, NULL},
                                {"imported", imported, METH_NOARGS, NULL},
                                {"layout", layout, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "misuse", NULL, -1, methods, NULL, NULL, NULL, NULL};
PyMODINIT_FUNC PyInit_misuse(void) {
  PyObject *module = PyModule_Create(&definition);
#ifdef Py_GIL_DISABLED
  if (module != NULL) PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
  return module;
}
