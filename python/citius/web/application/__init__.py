"""The application: its declarations, the gateway made of them, its start and its stop."""
