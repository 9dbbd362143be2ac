# Refused at its first byte, without waiting for a line end
> \x05\x01\x00
= fault MethodSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
