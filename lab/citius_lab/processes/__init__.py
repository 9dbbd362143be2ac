"""Processes on this machine: started, watched, ended, and what they cost."""
