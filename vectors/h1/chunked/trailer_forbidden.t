# RFC 9110 §6.5.1: authenticates the message
? authorization Authorization: b
# RFC 9110 §6.5.1: frames the message
? content_length Content-Length: 5
# RFC 9110 §6.5.1: routes the message
? host Host: b
# RFC 9110 §6.5.1: frames the message
? transfer_encoding Transfer-Encoding: chunked
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> \?\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TrailerForbidden blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
