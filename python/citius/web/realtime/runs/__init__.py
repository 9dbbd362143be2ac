"""Runs: generators of an application that clients begin, read and cancel, in any worker."""
