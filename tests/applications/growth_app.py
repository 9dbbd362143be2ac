"""Every way to read what a client sends."""

# pyright: basic

from citius import App

app = App()


@app.get("/")
def look(request):
    request.headers.multi_items()
    request.query.multi_items()
    read = request.cookies, request.host, request.path
    return {"all": "read"} if read else {}


@app.get("/typed")
def typed(a: int = 0, b: str = ""):
    return "typed"


@app.post("/form")
def form(request):
    return str(len(request.form()))


@app.post("/json")
def decoded(request):
    request.json()
    return "decoded"


@app.websocket("/ws")
async def echo(ws):
    async for _message in ws:
        await ws.send("1")


@app.rpc
def ignore(*values):
    return None
