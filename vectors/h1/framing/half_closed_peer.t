# The peer closes its side with its request and still gets the answer
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 2\r\n
> \r\n
> abGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
! finish
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nPOST / 2\nab
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
= close clean
