# RFC 9113 §3.4: the preface of HTTP/2 on a port that speaks HTTP/1
> PRI * HTTP/2.0\r\n
> \r\n
> SM\r\n
> \r\n
= fault VersionUnsupported blame=peer
< HTTP/1.1 505 HTTP Version Not Supported\r\n...
= close linger
