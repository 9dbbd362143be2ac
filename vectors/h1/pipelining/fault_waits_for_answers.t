# The answer to a fault waits for its turn (waitress CVE-2024-49768)
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 0 GET /a
= fault RequestLineSyntax blame=peer
= reading no
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
< HTTP/1.1 400 Bad Request\r\n...
= close linger
