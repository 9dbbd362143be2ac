"""Resumable uploads: files that come in several requests (``Router.uploads``)."""
