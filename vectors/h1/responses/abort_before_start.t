# Nothing was sent, and nothing will be: cut
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 abort
= request 0 GET /a
= close abort
