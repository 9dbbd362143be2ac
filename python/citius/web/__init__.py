"""The framework: applications, routes, handlers, and what they are given and may return.

Serves nothing by itself: :mod:`citius.serving` runs an application. Nothing is imported here, so that a
worker holds only the modules that its application uses.
"""
