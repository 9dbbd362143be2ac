# RFC 9112 §8: a last chunk without its last CRLF is no end (gunicorn 26.1)
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 1\r\n
> a\r\n
> 0\r\n
! finish
= fault Truncated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close clean
