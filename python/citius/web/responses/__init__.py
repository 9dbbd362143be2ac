"""Responses: what a handler returned, to bytes."""
