# RFC 9110 §9.3: the response has begun; it goes on to its end, and the connection ends with it
: app none
: limit body_bytes_max 10
> POST /a HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 6\r\n
> abcdef\r\n
~ 0 want all
= request 0 POST /a
= data 0 abcdef
~ 0 start 200 content-length: 4\r\n\r\n
~ 0 data ab
< HTTP/1.1 200 OK\r\n
< connection: close\r\n
< content-length: 4\r\n
< \r\n
< ab
> 5\r\n
> abcde
= refused 0 BodyTooLong
= fault BodyTooLong blame=peer
= reading no
~ 0 want all
~ 0 data cd
~ 0 end
< cd
= close linger
