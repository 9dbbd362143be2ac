"""What WSGI says of a client behind a proxy."""

# pyright: basic

import json


def app(environ, start_response):
    port = environ["REMOTE_PORT"]
    said = {
        "client": (environ["REMOTE_ADDR"] and [environ["REMOTE_ADDR"], int(port or 0)]) or None,
        "scheme": environ["wsgi.url_scheme"],
        "host": environ["HTTP_HOST"],
        "root": environ["SCRIPT_NAME"],
        "path": environ["PATH_INFO"],
    }
    if environ["SERVER_NAME"] != "127.0.0.1":
        said["server_name"] = [environ["SERVER_NAME"], environ["SERVER_PORT"]]
    start_response("200 OK", [("content-type", "application/json")])
    return [json.dumps(said).encode()]
