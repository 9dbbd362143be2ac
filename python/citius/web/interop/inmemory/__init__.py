"""A native application called through connections in memory, by ASGI servers, test clients and clients."""
