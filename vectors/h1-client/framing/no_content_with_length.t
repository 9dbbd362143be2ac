# RFC 9110 §8.6, RFC 9112 §6.1: content for some, another response for others
? length content-length: 5
? chunked transfer-encoding: chunked
> HTTP/1.1 204 No Content\r\n
> \?\r\n
> \r\n
> hello
= fault ContentForbidden
= over
