"""Single requests to a server, and whether its responses are right."""
