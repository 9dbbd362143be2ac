# RFC 3986 §3: a query may follow the authority at once
> GET http://example.com?a=b HTTP/1.1\r\n
> Host: example.com\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nGET /?a=b 0\n
