"""What a declared type says of a response: only its fields are sent, and they are of its types."""
