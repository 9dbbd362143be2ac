# COMP-ABSOLUTE-FORM: 2xx preferred; 400 warns
? comp_absolute_form http://a/
# SMUG-ABSOLUTE-URI-HOST-MISMATCH: 400 or 2xx
? smug_absolute_uri_host_mismatch http://other.example.com/
> GET \? HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
