# A rate of 0 is no limit
: limit body_rate_min_bytes_per_s 0
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10\r\n
> \r\n
= deadline none
