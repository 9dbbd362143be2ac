# RFC 9112 §3: nothing stands before the method
? leading_tab \tGET
# RFC 9110 §9.1: a method is a token
? method_with_colon GE:T
? method_with_nul G\x00T
> \? / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault MethodSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
