# COMP-CHUNKED-HEX-UPPERCASE: 2xx + echo
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> A\r\n
> helloworld\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 20\r\n
< \r\n
< POST / 10\n
< helloworld
