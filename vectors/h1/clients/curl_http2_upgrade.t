# curl --http2 in clear text
> GET / HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: curl/8.5.0\r\n
> Accept: */*\r\n
> Connection: Upgrade, HTTP2-Settings\r\n
> Upgrade: h2c\r\n
> HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
