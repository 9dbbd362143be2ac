# RFC 9112 §2.3
? two 2.0
? higher_minor 1.2
? old 0.9
> HTTP/\? 200 OK\r\n
> content-length: 0\r\n
> \r\n
= fault VersionUnsupported
