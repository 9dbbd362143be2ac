"""What goes to many clients or lasts: server-sent events, broadcasts, rooms, WebSockets."""
