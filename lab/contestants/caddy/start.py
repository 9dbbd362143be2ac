"""Writes Caddy's configuration for one port and becomes the server: start.py PROGRAM PORT WORKERS [CERT KEY]."""

import json
import os
import pathlib
import sys
import tempfile

program, port, workers, *tls = sys.argv[1:]
folder = pathlib.Path(tempfile.gettempdir(), f"citius-lab-caddy-{port}")
folder.mkdir(parents=True, exist_ok=True)
text = {"Content-Type": ["text/plain; charset=utf-8"]}
server = {
    "listen": [f"127.0.0.1:{port}"],
    "automatic_https": {"disable": True},
    "routes": [
        {
            "match": [{"path": ["/"]}],
            "handle": [{"handler": "static_response", "headers": text, "body": "Welcome!\n"}],
        },
        {"handle": [{"handler": "static_response", "status_code": 404, "body": "no such page\n"}]},
    ],
}
apps = {"http": {"servers": {"lab": server}}}
if tls:
    server["tls_connection_policies"] = [{}]
    server["protocols"] = ["h1", "h2", "h3"]
    certificate = {"certificate": tls[0], "key": tls[1]}
    apps["tls"] = {"certificates": {"load_files": [certificate]}}
configuration = {
    "admin": {"disabled": True, "config": {"persist": False}},
    "logging": {"logs": {"default": {"level": "ERROR"}}},
    "storage": {"module": "file_system", "root": str(folder)},
    "apps": apps,
}
(folder / "caddy.json").write_text(json.dumps(configuration))
os.environ["GOMAXPROCS"] = workers
os.execv(program, [program, "run", "--config", str(folder / "caddy.json")])
