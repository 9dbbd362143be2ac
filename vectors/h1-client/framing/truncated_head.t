# RFC 9112 §8
? line HTTP/1.1 20
? fields HTTP/1.1 200 OK\r\ncontent-le
? blank_line HTTP/1.1 200 OK\r\ncontent-length: 0\r\n
> \?
! finish
= fault HeadTruncated
= over
