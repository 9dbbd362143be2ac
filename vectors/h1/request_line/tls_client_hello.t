# Refused at its first byte, without waiting for a line end
> \x16\x03\x01\x02\x00\x01
= fault MethodSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
