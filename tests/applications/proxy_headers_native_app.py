"""What a native handler sees of a client behind a proxy."""

# pyright: basic

from citius import App

app = App()


@app.get("/")
def index(request):
    return {
        "client": request.client,
        "scheme": request.scheme,
        "host": request.host,
        "root": request.root_path,
        "path": request.path,
    }
