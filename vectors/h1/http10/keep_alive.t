# RFC 9112 Appendix C.2.2: asked for, granted and said
> GET /a HTTP/1.0\r\n
> Connection: keep-alive\r\n
> \r\n
> GET /b HTTP/1.0\r\n
> Connection: Keep-Alive\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: keep-alive\r\ncontent-length: 9\r\n\r\nGET /a 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: keep-alive\r\ncontent-length: 9\r\n\r\nGET /b 0\n
