"""The procedures of the contract on Citius, callable on connections of QUIC."""

import plain
from citius import App

app = App()
plain.add(app)
app.webtransport_rpc("/rpc", quic=True)
