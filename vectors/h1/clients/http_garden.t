# Names in odd capitals and values with odd, but allowed, bytes
> GET / HTTP/1.1\r\n
> hOSt: a\r\n
> X-Json: {"a": [1, 2]}\r\n
> X-Quoted: "a, b; c"\r\n
> X-Percent: %0d%0a\r\n
> X-Comment: (a (nested) comment)\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
