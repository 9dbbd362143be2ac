from citius import App

app = App()


@app.get("/")
def index() -> str:
    return ""


@app.get("/user/{id}")
def user(id: str) -> str:
    return id


@app.post("/user")
def create() -> str:
    return ""
