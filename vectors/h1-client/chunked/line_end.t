# RFC 9112 §7.1: a bare LF ends a line for some
? size 1\na\r\n
? extension 1;a\na\r\n
? cr 1\ra\r\n
? trailers 0\r\na: b\n\r\n
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> \?
= head 200
= fault LineEnding
