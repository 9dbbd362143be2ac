# A connection without a request closes silently
@ +29999
= deadline +1
@ +1
= close clean
