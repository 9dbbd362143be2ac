# RFC 9110 §15.2.2
? content content
? head head
? connect connect
~ \?
> HTTP/1.1 101 Switching Protocols\r\n
> upgrade: websocket\r\n
> \r\n
= fault SwitchUnasked
= over
