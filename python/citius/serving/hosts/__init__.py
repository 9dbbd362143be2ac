"""Hosts: the event loops in which a worker's reactor runs.

A host calls the reactor when its descriptor is readable, handles signals and enforces the drain deadline.
The reactor does everything else (timers, backpressure, keep-alive) in Rust.
"""
