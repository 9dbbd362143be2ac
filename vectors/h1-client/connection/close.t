# RFC 9112 §9.6
? alone close
? list keep-alive, Close
> HTTP/1.1 200 OK\r\n
> connection: \?\r\n
> content-length: 1\r\n
> \r\n
> aHTTP/1.1 200 OK\r\n
= head 200
= data a
= end
= left HTTP/1.1 200 OK\r\n
= over
