# RFC 9110 §15.2: HTTP/1.0 has none, and what follows is its body there
> HTTP/1.0 100 Continue\r\n
> \r\n
> HTTP/1.0 200 OK\r\n
> content-length: 0\r\n
> \r\n
= fault InterimInHttp10
