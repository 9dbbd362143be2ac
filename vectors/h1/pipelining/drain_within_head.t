# A head that is not complete is not a request
> GET / HT
! drain
= close linger
