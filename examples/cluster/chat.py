"""A chat on several machines: each gets the messages of all, and clients that reconnect those they missed."""

from __future__ import annotations

import os

from citius import App, Request, Response, WebSocket, html_response
from citius.cluster import Cluster

cluster = Cluster(
    os.environ.get("CLUSTER"), application="chat", secret=os.environ.get("CLUSTER_SECRET")
)
app = App(cluster=cluster)
lobby = app.room("lobby", history=1000)
online = cluster.presence("lobby")

PAGE = """<!doctype html><meta charset="utf-8"><title>Chat</title>
<h1>Chat on node %s</h1><ul id="said"></ul><form><input name="text" autofocus></form>
<script>
let last = "none", socket;
function connect() {
  socket = new WebSocket(location.href.replace("http", "ws") + "lobby?name=someone&after=" + last);
  socket.onmessage = (event) => {
    const end = event.data.indexOf("\\n");
    last = event.data.slice(0, end);
    const line = document.createElement("li");
    line.textContent = event.data.slice(end + 1);
    said.append(line);
  };
  socket.onclose = () => setTimeout(connect, 200 + 800 * Math.random());
}
document.forms[0].onsubmit = (event) => {
  event.preventDefault();
  socket.send(event.target.text.value);
  event.target.reset();
};
connect();
</script>"""


@app.get("/")
def page() -> Response:
    return html_response(PAGE % os.environ.get("NODE", "1"))


@app.websocket("/lobby")
async def chat(ws: WebSocket, name: str, after: str = "") -> None:
    # With an identifier that means nothing, such as "none", a client gets the whole history.
    lobby.join(ws, after=after or None)
    async with online.enter(name):
        async for message in ws:
            lobby.send(f"{name}: {message!s}")


@app.get("/online")
async def who(request: Request) -> list[str]:
    return sorted(await online.members())
