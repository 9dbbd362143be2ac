# Chrome, a form with a file
> POST /upload HTTP/1.1\r\n
> Host: localhost:8000\r\n
> Connection: keep-alive\r\n
> Content-Length: 152\r\n
> Cache-Control: max-age=0\r\n
> Origin: http://localhost:8000\r\n
> Content-Type: multipart/form-data; boundary=----WebKitFormBoundaryabc\r\n
> \r\n
> ------WebKitFormBoundaryabc\r\n
> Content-Disposition: form-data; name="f"; filename="a.txt"\r\n
> Content-Type: text/plain\r\n
> \r\n
> hi\r\n
> ------WebKitFormBoundaryabc--\r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 169\r\n\r\nPOST /upload 152\n------WebKitFormBoundaryabc\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\nhi\r\n------WebKitFormBoundaryabc--\r\n
