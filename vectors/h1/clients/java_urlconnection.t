# Java HttpURLConnection
> GET /a HTTP/1.1\r\n
> User-Agent: Java/1.8.0_392\r\n
> Host: localhost:8000\r\n
> Accept: text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2\r\n
> Connection: keep-alive\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /a 0\n
