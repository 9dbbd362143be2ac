# RFC 9110 §7.8: HTTP/1.0 has no other protocols
~ upgrade
> HTTP/1.0 101 x\r\n
> \r\n
= fault InterimInHttp10
