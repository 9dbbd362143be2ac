# RFC 9110 §7.2: example.com: is a host
? empty_port example.com:
# RFC 9110 §7.2: 127.0.0.1 is a host
? ipv4 127.0.0.1
# RFC 9110 §7.2: 127.0.0.1:65535 is a host
? ipv4_and_port 127.0.0.1:65535
# RFC 9110 §7.2: [::1] is a host
? ipv6 [::1]
# RFC 9110 §7.2: [2001:db8::1]:8000 is a host
? ipv6_and_port [2001:db8::1]:8000
# RFC 9110 §7.2: example.com is a host
? name example.com
# RFC 9110 §7.2: example.com:8000 is a host
? name_and_port example.com:8000
# RFC 9110 §7.2: b%C3%BCcher.example is a host
? percent_encoded b%C3%BCcher.example
# RFC 9110 §7.2: example.com. is a host
? trailing_dot example.com.
# RFC 9110 §7.2: my_service is a host
? underscore my_service
# RFC 9112 §5.1: white space around a value is not part of it
? white_space_around \t a \t
> GET / HTTP/1.1\r\n
> Host: \?\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
