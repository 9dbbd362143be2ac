# RFC 9112 §5.1
? space_before_colon content-length : 0
? empty : a
? no_colon content-length
? space_inside a b: c
? control a\x01: b
? obs_text \xe4: b
? brackets a[0]: b
> HTTP/1.1 200 OK\r\n
> \?\r\n
> content-length: 0\r\n
> \r\n
= fault FieldNameSyntax
