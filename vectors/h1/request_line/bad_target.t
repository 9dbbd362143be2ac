# RFC 3986 §3.2.3: a port is digits
? absolute_form_bad_port http://a:b/
# RFC 9112 §3.2.2: not a scheme this server speaks
? absolute_form_ftp ftp://a/
# RFC 9110 §4.2.4: userinfo from outside is refused
? absolute_form_userinfo http://u:p@a/
# RFC 9110 §4.2.1: an http URI has a host
? absolute_form_without_host http:///a
# RFC 9112 §3.2.4: only with OPTIONS
? asterisk_with_get *
# RFC 9112 §3.2.3: only with CONNECT
? authority_with_get a:80
# RFC 9112 §3.2: visible ASCII
? target_with_del /a\x7fb
# RFC 9112 §3.2: a target has no fragment
? target_with_fragment /a#b
# RFC 9112 §3.2: visible ASCII
? target_with_nul /a\x00b
# RFC 3986 §2.5: other bytes are percent-encoded
? target_with_utf8 /b\xc3\xbccher
# RFC 9112 §3.2: none of the four forms
? target_without_slash a
> GET \? HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
