"""Services of connectrpc in a native application: Connect, gRPC and gRPC-Web."""
