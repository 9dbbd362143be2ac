# Chrome 126
> GET /api?q=%7B%22a%22%3A1%7D HTTP/1.1\r\n
> Host: 127.0.0.1:8000\r\n
> Connection: keep-alive\r\n
> sec-ch-ua: "Not/A)Brand";v="8", "Chromium";v="126", "Google Chrome";v="126"\r\n
> sec-ch-ua-mobile: ?0\r\n
> sec-ch-ua-platform: "Linux"\r\n
> Upgrade-Insecure-Requests: 1\r\n
> User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n
> Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7\r\n
> Sec-Fetch-Site: none\r\n
> Sec-Fetch-Mode: navigate\r\n
> Sec-Fetch-User: ?1\r\n
> Sec-Fetch-Dest: document\r\n
> Accept-Encoding: gzip, deflate, br, zstd\r\n
> Accept-Language: en-GB,en;q=0.9\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 31\r\n\r\nGET /api?q=%7B%22a%22%3A1%7D 0\n
