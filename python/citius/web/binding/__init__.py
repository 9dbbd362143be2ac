"""Binding: what of a request becomes which argument of a handler."""
