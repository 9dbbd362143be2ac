"""Handlers in Cython: citius serve app.py, after python setup.py build_ext --inplace."""

from citius import App
from handlers import __pyx_capi__ as native

app = App()
app.post("/count", compiled=native["count_body"])
app.get("/square/{number}", compiled=native["square"])
