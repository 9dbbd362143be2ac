"""What the clients of databases share: the methods of pools and transactions, and statements as t-strings."""
