# JMeter
> GET /async HTTP/1.1\r\n
> Connection: keep-alive\r\n
> Host: localhost:8000\r\n
> User-Agent: Apache-HttpClient/4.5.14 (Java/17.0.9)\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nGET /async 0\n
