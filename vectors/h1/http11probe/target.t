# MAL-NON-ASCII-URL: 400 or close
? mal_non_ascii_url /caf\xC3\xA9
# MAL-NUL-IN-URL: 400 or close
? mal_nul_in_url /\x00test
# MAL-URL-OVERLONG-UTF8: 400 or close
? mal_url_overlong_utf8 /\xC0\xAF
# RFC9112-3.2-FRAGMENT-IN-TARGET: 400 or 2xx
? rfc9112_3_2_fragment_in_target /path#frag
> GET \? HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
