"""Routes: how they are declared, grouped, mounted, named and called."""
