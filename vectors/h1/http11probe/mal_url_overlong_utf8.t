# MAL-URL-OVERLONG-UTF8: 400 or close
> GET /\xC0\xAF HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
