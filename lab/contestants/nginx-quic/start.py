"""Writes nginx's configuration for one port and becomes the server: start.py PORT WORKERS [CERT KEY]."""

import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "shared" / "python"))
import records_stdlib

CONFIGURATION = """
daemon off;
pid {folder}/pid;
error_log stderr error;
worker_processes {workers};
{user}
events {{ worker_connections 8192; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    open_file_cache max=16;
    server {{
        {listen}
        root {folder}/www;
        location = / {{ index index.txt; }}
        location = /index.txt {{ default_type text/plain; }}
        location = /transfer-data {{ default_type application/json; }}
    }}
}}
"""
TLS = """
        listen 127.0.0.1:{port} quic reuseport;
        listen 127.0.0.1:{port} ssl backlog=2048;
        http2 on;
        ssl_certificate {cert};
        ssl_certificate_key {key};
"""

port, workers, *tls = sys.argv[1:]
folder = pathlib.Path(tempfile.gettempdir(), f"citius-lab-nginx-quic-{port}")
(folder / "www").mkdir(parents=True, exist_ok=True)
(folder / "www" / "index.txt").write_text("Welcome!\n")
(folder / "www" / "transfer-data").write_bytes(records_stdlib.JSON_ARRAY)
if tls:
    listen = TLS.format(port=port, cert=tls[0], key=tls[1])
else:
    listen = f"listen 127.0.0.1:{port} backlog=2048;"
# Without this directive workers run as the user `nobody`, which cannot read the directory.
user = "user root;" if os.geteuid() == 0 else ""
text = CONFIGURATION.format(folder=folder, workers=workers, user=user, listen=listen)
(folder / "nginx.conf").write_text(text)
os.execvp("nginx", ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")])
