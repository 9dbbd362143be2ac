# RFC 9112 §6.1: chunked alone
? gzip gzip
? list gzip, chunked
? identity identity
? quoted "chunked"
? parameter chunked;q=1
? empty
? twice chunked, chunked
? vertical_tab \xe4chunked
> HTTP/1.1 200 OK\r\n
> transfer-encoding: \?\r\n
> \r\n
> 0\r\n
> \r\n
= fault TransferEncoding
