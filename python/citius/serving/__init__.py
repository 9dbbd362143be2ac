"""The server: from a configuration to running workers.

Read server.py first. Nothing is imported here, so that a worker holds only the modules that it uses.
"""
