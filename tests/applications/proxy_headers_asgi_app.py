"""What ASGI says of a client behind a proxy."""

# pyright: basic

import json


async def app(scope, receive, send):
    if scope["type"] != "http":
        raise RuntimeError(scope["type"])
    host = [value.decode() for name, value in scope["headers"] if name == b"host"]
    said = {
        "client": scope["client"],
        "scheme": scope["scheme"],
        "host": ",".join(host),
        "root": scope["root_path"],
        "path": scope["path"],
        "server": scope["server"],
        "raw_path": scope["raw_path"].decode(),
    }
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(said).encode()})
