# …known before its end is seen
> GET /\*9000{a}
= fault TargetTooLong blame=peer
< HTTP/1.1 414 URI Too Long\r\n...
= close linger
