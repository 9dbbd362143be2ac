# The body of the last request is still read
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Connection: close\r\n
> Content-Length: 3\r\n
> \r\n
> abcGET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 12\r\n\r\nPOST / 3\nabc
= close
