# Prometheus
> GET /metrics HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: Prometheus/2.52.0\r\n
> Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1\r\n
> Accept-Encoding: gzip\r\n
> X-Prometheus-Scrape-Timeout-Seconds: 10\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 15\r\n\r\nGET /metrics 0\n
