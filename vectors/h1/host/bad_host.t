# RFC 9110 §7.2: not a host
? backslash a\\b
? brackets_empty []
? comma a, b
? fragment a#b
? half_percent a%4
? ipv6_bare ::1
? ipv6_open [::1
? ipv6_wrong [1:2]
? ipv6_zone [fe80::1%25eth0]
? list a,b
? path a/b
? port_letters a:b
? port_only :80
? port_sign a:+80
? port_too_large a:65536
? query a?b
? scheme http://a
? space a b
? two_ports a:80:80
? userinfo user@a
? utf8 b\xc3\xbccher
> GET / HTTP/1.1\r\n
> Host: \?\r\n
> \r\n
= fault HostSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
