# RFC 9112 §3.2.2: the absolute form does not replace the field
> GET http://a/ HTTP/1.1\r\n
> \r\n
= fault HostMissing blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
