"""Starts a reverse proxy on a port and, behind it, a server; ends both when it is ended.

Run as ``start.py nginx|nginx-uwsgi|haproxy|envoy PORT WORKERS [COMMAND …]``. In the command the word ``BACKEND``
stands for the server's port. Without a command the server is the one of ``ORIGIN_URL``, which the lab runs; without
that, too, the proxy responds itself. The configurations are the documented ones
for HTTP/1.1 to both sides with connections kept, no access log, and as many threads or processes as workers;
``nginx-uwsgi`` speaks uWSGI's own protocol to the server, a connection per request as that protocol has it.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr error;
worker_processes {workers};
events {{ worker_connections 8192; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    upstream server {{ server 127.0.0.1:{backend}; keepalive 512; keepalive_requests 1000000; }}
    server {{
        listen 127.0.0.1:{port} backlog=2048;
        location / {{ {location} }}
    }}
}}
"""
NGINX_PASS = """
            proxy_pass http://server;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
"""
NGINX_UWSGI = """
            uwsgi_pass server;
            uwsgi_param QUERY_STRING $query_string;
            uwsgi_param REQUEST_METHOD $request_method;
            uwsgi_param CONTENT_TYPE $content_type;
            uwsgi_param CONTENT_LENGTH $content_length;
            uwsgi_param REQUEST_URI $request_uri;
            uwsgi_param PATH_INFO $document_uri;
            uwsgi_param SERVER_PROTOCOL $server_protocol;
            uwsgi_param REMOTE_ADDR $remote_addr;
            uwsgi_param SERVER_PORT $server_port;
            uwsgi_param SERVER_NAME $server_name;
"""
NGINX_RETURN = 'default_type text/plain; if ($uri != "/") { return 404; } return 200 "Welcome!\\n";'
HAPROXY = """
global
    nbthread {workers}
    maxconn 8192
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    http-reuse always
    option forwardfor
frontend clients
    bind 127.0.0.1:{port} backlog 2048
    {frontend}
backend servers
    server one 127.0.0.1:{backend}
"""
HAPROXY_RETURN = (
    'http-request return status 200 content-type text/plain lf-string "Welcome!\\n" if { path / }\n'
    "    http-request return status 404"
)
ENVOY = """
static_resources:
  listeners:
  - address: {{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: clients
          codec_type: HTTP1
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: {routes}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {{"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}
  clusters:
  - name: server
    type: STATIC
    circuit_breakers: {{thresholds: [{{max_connections: 8192, max_pending_requests: 8192, max_requests: 8192}}]}}
    load_assignment:
      cluster_name: server
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {backend}}}}}}}}}]}}]
"""

ENVOY_PASS = '[{match: {prefix: "/"}, route: {cluster: server}}]'
ENVOY_RETURN = """
              - match: {path: "/"}
                direct_response: {status: 200, body: {inline_string: "Welcome!\\n"}}
              - match: {prefix: "/"}
                direct_response: {status: 404}
"""


def free_port():
    """Return a port that is not in use."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def proxy(kind, port, workers, backend, folder):
    """Return the words that start the proxy; ``backend`` is 0 if it responds itself."""
    values = {"port": port, "workers": workers, "backend": backend or 9, "folder": folder}
    if kind.startswith("nginx"):
        to_server = NGINX_UWSGI if kind == "nginx-uwsgi" else NGINX_PASS
        text = NGINX.format(location=to_server if backend else NGINX_RETURN, **values)
        words = ["nginx", "-p", str(folder), "-c", str(folder / "conf")]
    elif kind == "haproxy":
        frontend = "default_backend servers" if backend else HAPROXY_RETURN
        text = HAPROXY.format(frontend=frontend, **values)
        words = ["haproxy", "-db", "-q", "-f", str(folder / "conf")]
    else:
        text = ENVOY.format(routes=ENVOY_PASS if backend else ENVOY_RETURN, **values)
        command = Path(sys.executable).with_name("envoy")
        words = [str(command), "-c", str(folder / "conf.yaml"), "--concurrency", str(workers)]
        words += ["--log-level", "error", "--use-dynamic-base-id"]
        (folder / "conf.yaml").write_text(text)
    (folder / "conf").write_text(text)
    return words


def main():
    kind, port, workers, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="citius-lab-proxy-") as name:
        origin = os.environ.get("ORIGIN_URL", ":0")
        backend = free_port() if command else int(origin.rpartition(":")[2])
        words = [word.replace("BACKEND", str(backend)) for word in command]
        children = [subprocess.Popen(words)] if words else []
        try:
            if children:
                wait_for(backend, children[0])
            start = proxy(kind, int(port), int(workers), backend, Path(name))
            children.append(subprocess.Popen(start, stdin=subprocess.DEVNULL))
            pid, status = os.wait()
            sys.exit(f"{kind}: the process {pid} ended with {os.waitstatus_to_exitcode(status)}")
        finally:
            for child in children:
                child.terminate()
            for child in children:
                child.wait()


def wait_for(port, child):
    """Wait until the server accepts: a proxy that does not find it says 502 for a while."""
    while child.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            pass
    sys.exit("the server behind the proxy did not start")


if __name__ == "__main__":
    main()
