"""Hosts: who owns the thread.

A host turns the reactor when its descriptor is readable, hears signals and keeps the drain deadline.
Everything else (timers, backpressure, keep-alive) is below it, in Rust.
"""
