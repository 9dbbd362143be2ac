# MAL-H2-PREFACE: 400/505/close/timeout
> PRI * HTTP/2.0\r\n
> \r\n
> SM\r\n
> \r\n
= fault VersionUnsupported blame=peer
< HTTP/1.1 505 HTTP Version Not Supported\r\n...
= close linger
