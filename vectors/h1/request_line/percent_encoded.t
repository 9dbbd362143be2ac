# The path stays as it was sent; decoding is not the parser's business
> GET /%41%2f%00%zz HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 20\r\n\r\nGET /%41%2f%00%zz 0\n
