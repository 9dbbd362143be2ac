# A readiness probe
> GET /healthz HTTP/1.1\r\n
> Host: 10.1.2.3:8000\r\n
> User-Agent: kube-probe/1.29\r\n
> Accept: */*\r\n
> Connection: close\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 15\r\n\r\nGET /healthz 0\n
= close clean
