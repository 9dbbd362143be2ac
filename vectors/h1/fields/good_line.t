# A cookie of two kilobytes
? long_value Cookie: \*2048{c}
# RFC 9110 §5.6.2: tchar
? name_of_all_token_bytes !#$%&'*+-.^_`|~aZ9: a
# RFC 9110 §5.5: bytes above 0x7f are opaque
? obs_text X: \x80\xff\xc3\xa9
# RFC 9110 §5.5: a tab may stand in a value
? tab_in_value X: a\tb
# Only the first colon ends the name
? value_with_colons X: http://a:80/: b
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \?\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
