# Bodies of both framings between requests without
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 3\r\n
> \r\n
> abcGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 2\r\n
> de\r\n
> 0\r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nPOST / 3\nabc
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nPOST / 2\nde
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
