# A server that has too much to do says so
! refuse Overloaded
= fault Overloaded
< HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain; charset=utf-8\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 21\r\n\r\nserver is overloaded\n
= close linger
