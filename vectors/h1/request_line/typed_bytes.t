# Visible bytes outside RFC 3986 that browsers and curl send as typed
> GET /a|b{c}"<>^`[]\\ HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 22\r\n\r\nGET /a|b{c}"<>^`[]\\ 0\n
