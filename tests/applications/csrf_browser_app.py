"""A form that is protected against other sites, for a browser."""

# pyright: basic

from citius import App, Response
from citius.web.middleware import CSRF, Sessions, csrf_field, session

app = App()

app.middleware(Sessions("a secret of sixteen bytes"))
app.middleware(CSRF(tokens=True))


@app.get("/")
def page(request):
    session(request)["user"] = "me"
    form = f"<form method=post action=/pay>{csrf_field(request)}<input name=sum><button></button></form>"
    return Response(form, content_type="text/html")


@app.post("/pay")
def pay(request):
    return Response(
        session(request)["user"] + " paid " + request.form()["sum"], content_type="text/html"
    )
