# RFC 9110 §7.6.1, RFC 9112 §6.1: fields that frame the message or are for one connection are the server's; nothing was sent: 500
? coding transfer-encoding: chunked
? keep_alive keep-alive: timeout=5
? upgrade upgrade: h2c
? te te: trailers
? proxy proxy-connection: close
? option connection: upgrade
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 \?\r\n\r\n
= request 0 GET /a
= app-fault 0 ResponseConnectionField
< HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n\r\ninternal server error\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
