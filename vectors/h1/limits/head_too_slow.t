# RFC 9110 §15.5.9: a head that does not end
> GET / HT
@ +29999
= deadline +1
> TP/1.1\r\n
@ +1
= fault HeadTooSlow blame=peer
< HTTP/1.1 408 Request Timeout\r\n...
= close linger
