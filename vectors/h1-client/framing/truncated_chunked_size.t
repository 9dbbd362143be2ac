# RFC 9112 §8: the last chunk and the trailer section end the content, nothing else
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 5
! finish
= head 200
= fault BodyTruncated
