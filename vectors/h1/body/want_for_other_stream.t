# Only the body that is being read can be wanted
: app none
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> OPTIONS / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 1\r\n
> \r\n
> a
~ 0 want all
~ 7 want all
= request 0 GET /
= request 1 OPTIONS /
= reading no
