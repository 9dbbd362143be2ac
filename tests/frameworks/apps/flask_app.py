"""Flask over the course, and what its tutorial teaches: sessions, flashed messages, templates, uploads."""

import course
from flask import (
    Flask,
    Response,
    abort,
    flash,
    get_flashed_messages,
    jsonify,
    make_response,
    redirect,
    render_template_string,
    request,
    send_file,
    session,
    stream_with_context,
    url_for,
)

app = Flask(__name__)
app.secret_key = "for tests"
app.config["MAX_FORM_MEMORY_SIZE"] = None
PAGE = "<!doctype html><title>{{ name }}</title><h1>Hello, {{ name }}!</h1><a href={{ url }}>on</a>"


@app.get("/hello")
def hello():
    return Response(course.HELLO, mimetype="text/plain")


@app.get("/greet/<name>")
def greet(name):
    return jsonify(name=name, times=int(request.args.get("times", 1)))


@app.get("/show")
def show():
    return {
        "method": request.method,
        "url": request.url,
        "client": request.remote_addr,
        "query": request.query_string.decode(),
        "script_name": request.environ["SCRIPT_NAME"],
        "http": request.environ["SERVER_PROTOCOL"],
        "fields": {name: request.headers.get(name) for name in course.SHOWN},
    }


@app.post("/echo")
def echo():
    return Response(request.get_data(), mimetype="application/octet-stream")


@app.post("/echo-limited")
def echo_limited():
    request.max_content_length = 1000
    return Response(request.get_data(), mimetype="application/octet-stream")


@app.post("/form")
def form():
    return jsonify(request.form.to_dict())


@app.post("/upload")
def upload():
    file = request.files["file"]
    return course.described(request.form["title"], file.filename, file.mimetype, file.read())


@app.get("/stream")
def stream():
    return Response(stream_with_context(course.pieces()), mimetype="text/plain")


@app.get("/endless")
def endless():
    return Response(stream_with_context(course.endless()), mimetype="text/plain")


@app.get("/left")
def left():
    return jsonify(course.left)


@app.get("/fail")
def fail():
    raise course.Mistake("now")


@app.get("/fail-later")
def fail_later():
    return Response(course.fail_later(), mimetype="text/plain")


@app.get("/cookies")
def cookies():
    response = make_response("crumbs")
    response.set_cookie("one", "1", httponly=True)
    response.set_cookie("two", "2")
    return response


@app.get("/redirect")
def redirected():
    return redirect(url_for("hello"))


@app.get("/nothing")
def nothing():
    return "", 204


@app.get("/file")
def file():
    return send_file(course.os.path.abspath(course.FILE), mimetype="application/octet-stream")


@app.get("/count")
def count():
    session["count"] = session.get("count", 0) + 1
    return jsonify(session["count"])


@app.post("/say")
def say():
    flash(request.form["words"])
    return redirect(url_for("said"))


@app.get("/said")
def said():
    return jsonify(get_flashed_messages())


@app.get("/page/<name>")
def page(name):
    return render_template_string(PAGE, name=name, url=url_for("hello", _external=True))


@app.get("/teapot")
def teapot():
    abort(418)


@app.errorhandler(404)
def missing(error):
    return f"nothing at {request.path}", 404
