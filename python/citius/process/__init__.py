"""The process as the operating system sees it: identity, files, descriptors, forks, systemd.

Nothing is imported here.
"""
