# RFC 9112 §6.3: an attempt to split a response
? length_first content-length: 5\r\ntransfer-encoding: chunked
? coding_first transfer-encoding: chunked\r\ncontent-length: 5
> HTTP/1.1 200 OK\r\n
> \?\r\n
> \r\n
> 0\r\n
> \r\n
= fault AmbiguousLength
= over
