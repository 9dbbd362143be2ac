"""Settings: what can be configured, where values come from, and what other servers call them.

config.py declares every option. Nothing is imported here.
"""
