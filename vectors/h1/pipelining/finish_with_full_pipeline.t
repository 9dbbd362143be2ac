# Bytes that wait for room in the pipeline are still requests when the peer has left
: app none
: limit pipeline_max 1
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
! finish
= request 0 GET /a
= reading no
~ 0 respond 200 \r\na
= request 1 GET /b
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
~ 1 respond 200 \r\nb
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb
= close clean
