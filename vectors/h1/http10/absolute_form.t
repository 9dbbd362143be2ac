# The absolute form without Host
> GET http://a/b HTTP/1.0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 9\r\n\r\nGET /b 0\n
= close clean
