# curl -x: the absolute form
> GET http://example.com/a HTTP/1.1\r\n
> Host: example.com\r\n
> User-Agent: curl/8.5.0\r\n
> Accept: */*\r\n
> Proxy-Connection: Keep-Alive\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /a 0\n
