# RFC 9110 §15
? zero 000
? low 099
? six 600
? high 999
> HTTP/1.1 \? x\r\n
> content-length: 0\r\n
> \r\n
= fault StatusUnknown
