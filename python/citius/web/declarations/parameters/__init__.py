"""Markers of parameters: where a value of a request comes from, and what it must be."""
