"""The raw WSGI application over dicts (`json` and `msgpack`)."""

import records_stdlib
import wsgi_app

app = wsgi_app.application(records_stdlib)
