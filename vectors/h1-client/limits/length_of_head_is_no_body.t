# The length is that of a response to GET
: limit body_bytes_max 5
~ head
> HTTP/1.1 200 OK\r\n
> content-length: 500\r\n
> \r\n
= head 200
= end
= idle
