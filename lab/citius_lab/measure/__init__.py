"""A run: what is planned, driven and recorded."""
