"""What WSGI applications of tests are made of."""

# pyright: basic


def answer(start_response, body, *headers, status="200 OK"):
    start_response(status, [("Content-Type", "text/plain"), *headers])
    return [body]
