"""Pages and tables of one run or of two."""
