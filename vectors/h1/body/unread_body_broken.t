# Behind a chunked body that is not read nothing is read: what follows a broken chunk is no request
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> ab
~ 0 respond 200 \r\nok
= request 0 POST /
= close linger
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok
> cdGET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= close linger
