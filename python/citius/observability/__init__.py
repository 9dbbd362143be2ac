"""Observability: log lines, metrics and spans.

Nothing is imported here.
"""
