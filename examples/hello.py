"""The smallest service. citius serve examples/hello.py"""

from citius import App

app = App()


@app.get("/")
def hello():
    return "Welcome!\n"
