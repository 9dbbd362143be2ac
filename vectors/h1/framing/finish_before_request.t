# A peer that says nothing (browsers open connections ahead)
! finish
= close clean
