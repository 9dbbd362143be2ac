# Wishes for streams that are over, or never were, are ignored
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 \r\na
= request 0 GET /a
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
~ 0 respond 200 \r\nagain
~ 0 data x
~ 1 respond 200 \r\n
~ 4294967295 abort
= reading yes
