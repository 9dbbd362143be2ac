"""Writes h2o's configuration for one port and becomes the server: start.py PORT WORKERS [CERT KEY]."""

import json
import os
import pathlib
import sys
import tempfile

port, workers, *tls = sys.argv[1:]
folder = pathlib.Path(tempfile.gettempdir(), f"citius-lab-h2o-{port}")
(folder / "www").mkdir(parents=True, exist_ok=True)
(folder / "www" / "index.txt").write_text("Welcome!\n")
listen = {"host": "127.0.0.1", "port": int(port)}
if tls:
    listen["ssl"] = {"certificate-file": tls[0], "key-file": tls[1]}
configuration = {
    "listen": listen,
    "num-threads": int(workers),
    # As many as the experiments use; the default of 100 streams is kept.
    "max-connections": 10_000,
    "hosts": {"default": {"paths": {"/": {
        "file.dir": str(folder / "www"),
        "file.index": ["index.txt"],
    }}}},
}
if os.geteuid() == 0:
    # Otherwise it gives itself to `nobody`, who may not read the folder.
    configuration["user"] = "root"
# JSON is YAML, which is what it reads.
(folder / "h2o.conf").write_text(json.dumps(configuration))
os.execvp("h2o", ["h2o", "-c", str(folder / "h2o.conf")])
