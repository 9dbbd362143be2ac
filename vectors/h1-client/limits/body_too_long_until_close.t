: limit body_bytes_max 5
> HTTP/1.1 200 OK\r\n
> \r\n
> helloh
= head 200
= data hello
= fault BodyTooLong
= over
