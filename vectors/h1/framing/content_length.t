# RFC 9110 §8.6: 1*DIGIT
? leading_zeros 0005\r\n
# RFC 9112 §6.2
? plain 5\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: \?
> \r\n
> hello
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\nPOST / 5\nhello
