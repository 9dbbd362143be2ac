"""Responses that have no content."""

# pyright: basic


def application(environ, start_response):
    status = environ["PATH_INFO"][1:]
    headers = [("Content-Type", "text/plain")]
    if environ["QUERY_STRING"]:
        headers.append(("Content-Length", environ["QUERY_STRING"]))
    start_response(status + " Status", headers)
    if environ["REQUEST_METHOD"] == "HEAD" and environ["QUERY_STRING"] == "7":
        return []
    return [b"a body"]
