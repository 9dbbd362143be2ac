# RFC 9110 §8.6: 1*DIGIT
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 0005\r\n
> \r\n
> hello
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\nPOST / 5\nhello
