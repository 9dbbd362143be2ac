# RFC9112-2.3-HTTP09-REQUEST: 400/close/timeout
> GET /\r\n
= reading yes
