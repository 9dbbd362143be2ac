# RFC 9110 §15.2: one that is not known is like any other
> HTTP/1.1 199 x\r\n
> content-length: 0\r\n
> \r\n
= interim 199
