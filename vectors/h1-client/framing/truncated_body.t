# RFC 9112 §8
> HTTP/1.1 200 OK\r\n
> content-length: 5\r\n
> \r\n
> hell
! finish
= head 200
= data hell
= fault BodyTruncated
= over
