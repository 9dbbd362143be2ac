"""The service by connectrpc, mounted in a native application."""

from __future__ import annotations

from citius import App
from rpc_connectrpc import app as service

app = App()
app.mount_rpc(service, health=False)
