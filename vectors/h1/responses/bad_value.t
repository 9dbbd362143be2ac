# RFC 9110 §5.5: response splitting (uvicorn CVE-2020-7695), NUL, and the media type, which is a value too;
# nothing was sent: 500
? cr x: a\rset-cookie: b
? lf x: a\nset-cookie: b
? nul x: a\x00
? media_type :type: a\nx: y
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 \?\r\n\r\n
= request 0 GET /a
= app-fault 0 ResponseFieldValue
< HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n\r\ninternal server error\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
