"""Where the bodies of handlers run: threads, processes, other executors, native code, after the response."""
