# RFC 9110 §9.3.2: it must not have any
~ head
> HTTP/1.1 200 OK\r\n
> content-length: 5\r\n
> \r\n
> hello
= head 200
= end
= fault Unasked
= left hello
= over
