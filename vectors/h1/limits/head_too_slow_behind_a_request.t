# A slow second head does not cost the first its answer
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET
= request 0 GET /a
= deadline +30000
@ +30000
= fault HeadTooSlow blame=peer
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
< HTTP/1.1 408 Request Timeout\r\n...
= close linger
