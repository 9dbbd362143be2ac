# As many as Japronto's benchmark
> GET /0 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /1 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /2 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /3 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /4 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /5 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /6 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /7 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /8 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /9 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /10 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /11 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /12 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /13 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /14 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /15 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /16 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /17 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /18 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /19 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /20 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /21 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /22 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /23 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /0 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /1 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /2 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /3 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /4 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /5 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /6 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /7 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /8 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /9 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /10 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /11 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /12 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /13 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /14 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /15 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /16 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /17 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /18 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /19 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /20 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /21 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /22 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nGET /23 0\n
