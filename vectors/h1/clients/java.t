# Java 17 HttpClient asking for HTTP/2
> GET / HTTP/1.1\r\n
> Connection: Upgrade, HTTP2-Settings\r\n
> Content-Length: 0\r\n
> Host: localhost:8000\r\n
> HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n
> Upgrade: h2c\r\n
> User-Agent: Java-http-client/17.0.9\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
