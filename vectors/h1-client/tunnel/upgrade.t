# RFC 9110 §15.2.2: what follows is the other protocol's
~ upgrade
> HTTP/1.1 101 Switching Protocols\r\n
> upgrade: websocket\r\n
> \r\n
> \x81\x00
= tunnel 101
= left \x81\x00
= over
