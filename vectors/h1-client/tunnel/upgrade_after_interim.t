~ upgrade
> HTTP/1.1 100 Continue\r\n
> \r\n
> HTTP/1.1 101 x\r\n
> upgrade: a\r\n
> \r\n
= interim 100
= tunnel 101
