# RFC 9110 §15.2: the final response is still to come, and the request has been read
> HTTP/1.1 100 Continue\r\n
> \r\n
! finish
= interim 100
= fault HeadTruncated
