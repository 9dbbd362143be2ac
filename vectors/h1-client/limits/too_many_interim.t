: limit interim_max 2
> \*3{HTTP/1.1 102 x\r\n\r\n}
= interim 102
= interim 102
= fault TooManyInterim
= over
