# MAL-POST-CL-HUGE-NO-BODY: 400/close/timeout
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 999999999\r\n
> \r\n
= fault BodyTooLong blame=peer
< HTTP/1.1 413 Content Too Large\r\n...
= close linger
