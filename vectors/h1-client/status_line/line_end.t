# RFC 9112 §2.2: CRLF only
? lf_alone HTTP/1.1 200 OK\n
? lf_without_reason HTTP/1.1 200\n
? cr_alone HTTP/1.1 200 OK\rx: y\r\n
> \?
> content-length: 0\r\n
> \r\n
= fault LineEnding
