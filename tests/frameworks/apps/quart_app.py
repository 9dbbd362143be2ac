"""Quart over the course."""

import course
from quart import Quart, Response, jsonify, make_response, redirect, request, send_file, url_for

app = Quart(__name__)
app.secret_key = "for tests"
app.config["RESPONSE_TIMEOUT"] = None


@app.get("/hello")
async def hello():
    return Response(course.HELLO, mimetype="text/plain")


@app.get("/greet/<name>")
async def greet(name):
    return jsonify(name=name, times=int(request.args.get("times", 1)))


@app.get("/show")
async def show():
    return {
        "method": request.method,
        "url": request.url,
        "client": request.remote_addr,
        "query": request.query_string.decode(),
        "fields": {name: ",".join(request.headers.getlist(name)) for name in course.SHOWN},
    }


@app.post("/echo")
async def echo():
    return Response(await request.get_data(), mimetype="application/octet-stream")


@app.post("/form")
async def form():
    return jsonify((await request.form).to_dict())


@app.post("/upload")
async def upload():
    file = (await request.files)["file"]
    title = (await request.form)["title"]
    return course.described(title, file.filename, file.mimetype, file.read())


@app.get("/stream")
async def stream():
    return course.async_pieces(), 200, {"Content-Type": "text/plain"}


@app.get("/endless")
async def endless():
    return course.async_endless(), 200, {"Content-Type": "text/plain"}


@app.get("/fail-later")
async def fail_later():
    return course.async_fail_later(), 200, {"Content-Type": "text/plain"}


@app.get("/left")
async def left():
    return jsonify(course.left)


@app.get("/fail")
async def fail():
    raise course.Mistake("now")


@app.get("/cookies")
async def cookies():
    response = await make_response("crumbs")
    response.set_cookie("one", "1", httponly=True)
    response.set_cookie("two", "2")
    return response


@app.get("/redirect")
async def redirected():
    return redirect(url_for("hello"))


@app.get("/nothing")
async def nothing():
    return "", 204


@app.get("/file")
async def file():
    return await send_file(course.FILE, mimetype="application/octet-stream")
