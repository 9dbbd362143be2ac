# RFC 9112 §9.3: an idle connection may be closed at any moment
! finish
= fault ClosedBeforeResponse
= over
