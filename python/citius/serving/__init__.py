"""The server: from a configuration to running workers.

Read server.py first. This file imports nothing, so that a worker loads only the modules that it uses.
"""
