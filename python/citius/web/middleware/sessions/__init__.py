"""Sessions: what is kept of a client between its requests, in a cookie or in a store."""
