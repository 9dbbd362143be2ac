"""Procedures: functions that other services call by name, over HTTP, without it, and on QUIC."""
