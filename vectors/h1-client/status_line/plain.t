# RFC 9112 §4
? reason \x20OK
? no_reason \x20
? no_second_space
? long_reason \x20Not quite: so
? obs_text \x20\xc3\xa4
? tab \x20a\tb
> HTTP/1.1 200\?\r\n
> content-length: 0\r\n
> \r\n
= head 200
= end
= idle
