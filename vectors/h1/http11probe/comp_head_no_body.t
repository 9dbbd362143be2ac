# COMP-HEAD-NO-BODY: 2xx with no body
> HEAD / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 9\r\n
< \r\n
