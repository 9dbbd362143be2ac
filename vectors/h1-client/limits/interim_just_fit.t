: limit interim_max 2
> \*2{HTTP/1.1 102 x\r\n\r\n}
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \r\n
= interim 102
= interim 102
= head 200
= end
