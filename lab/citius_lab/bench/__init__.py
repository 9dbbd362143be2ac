"""Applications that are not the lab's own: servers for them, and other commits to compare with."""
