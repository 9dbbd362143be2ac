"""Records in, figures out, with a verdict on each."""
