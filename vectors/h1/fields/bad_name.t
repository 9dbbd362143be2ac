# RFC 9110 §5.1: a name is a token
? empty_name : a
# RFC 9110 §5.1
? name_with_nul X\x00: a
? name_with_parenthesis X(Y): a
? name_with_quote "X": a
? name_with_slash X/Y: a
? name_with_space X Y: a
? name_with_utf8 X\xc3\xa9: a
# RFC 9112 §5
? no_colon X
# RFC 9112 §5.1: a proxy that takes the name for another smuggles
? space_before_colon X : a
# RFC 9112 §5.1
? tab_before_colon X\t: a
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \?\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
