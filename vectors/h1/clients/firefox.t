# Firefox 128
> GET /shop/ HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n
> Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8\r\n
> Accept-Language: en-US,en;q=0.5\r\n
> Accept-Encoding: gzip, deflate, br, zstd\r\n
> DNT: 1\r\n
> Connection: keep-alive\r\n
> Cookie: session=eyJhbGciOiJIUzI1NiJ9.e30.abc-_def; theme="dark"\r\n
> Upgrade-Insecure-Requests: 1\r\n
> Sec-Fetch-Dest: document\r\n
> Sec-Fetch-Mode: navigate\r\n
> Sec-Fetch-Site: none\r\n
> Sec-Fetch-User: ?1\r\n
> Priority: u=0, i\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nGET /shop/ 0\n
