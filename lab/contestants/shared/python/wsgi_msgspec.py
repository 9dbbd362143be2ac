"""The raw WSGI application over typed structs (msgspec)."""

import records_msgspec
import wsgi_app

app = wsgi_app.application(records_msgspec)
