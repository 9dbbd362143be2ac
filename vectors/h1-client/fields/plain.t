# RFC 9112 §5.1: white space around a value
> HTTP/1.1 200 OK\r\n
> a:b\r\n
> c: \t d \r\n
> e:\r\n
> Set-Cookie: f=\xe4\r\n
> Content-Length:  2 \r\n
> \r\n
> ab
= head 200
= data ab
= end
= idle
