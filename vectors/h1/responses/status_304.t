# RFC 9110 §15.4.5: no body, and no length unless it is that of the 200
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 304 etag: "a"\r\n\r\n
= request 0 GET /a
< HTTP/1.1 304 Not Modified\r\netag: "a"\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
