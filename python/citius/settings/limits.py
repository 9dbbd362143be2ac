"""The limits as options: their units, help and the flags that other servers have for them.

Names and defaults come from the extension (``_core.LIMITS``, crates/citius-http/src/limits.rs).
"""

from __future__ import annotations

from typing import Final

from citius._core import LIMITS

LIMIT_HELP: Final[dict[str, tuple[str, str]]] = {
    "head_bytes_max": ("bytes", "Header section of a request with its start line; longer: 431."),
    "fields_max": ("fields", "Field lines of one header section; more: 431."),
    "target_bytes_max": ("bytes", "One request target; longer: 414."),
    "body_bytes_max": (
        "bytes", "One request body that the server holds until its handler is called; longer: 413. A "
        "route's body_bytes_max= replaces it. If it is set and --body-streamed-bytes-max is not, it limits "
        "streamed bodies too.",
    ),
    "body_streamed_bytes_max": (
        "bytes", "One request body that the application reads while it is received (ASGI, WSGI, "
        "stream=True); longer: 413. 0: no limit.",
    ),
    "body_spooled_bytes_max": (
        "bytes", "Bodies of one worker in temporary files, where long ones wait for a WSGI application with "
        "--threads 0; more: 413 or 503.",
    ),
    "chunk_size_digits_max": ("digits", "Hexadecimal digits of a chunk size; more: 400."),
    "chunk_extension_bytes_max": ("bytes", "Chunk extensions in one body; more: 400."),
    "trailer_bytes_max": ("bytes", "One trailer section; longer: 431."),
    "pipeline_max": ("requests", "Requests of one connection without a response; then reading pauses."),
    "head_read_ms": ("milliseconds", "From the first to the last byte of a header section; longer: 408."),
    "keep_alive_ms": ("milliseconds", "Time for which a connection may be idle; then it is closed."),
    "body_read_ms": ("milliseconds", "Span over which the rate of a body is measured."),
    "body_rate_min_bytes_per_s": (
        "bytes per second", "Average rate of a body over that span; lower: 408."
    ),
    "write_stall_ms": ("milliseconds", "Time for which a client may not read; then the connection is reset."),
    "linger_ms": ("milliseconds", "Time for a refused client to read its response."),
    "discard_bytes_max": (
        "bytes", "Unread body that is discarded to keep a connection of HTTP/1.1; more: closed."
    ),
    "connections_max": ("connections", "Open connections of one worker; more get a 503."),
    "descriptors_spare": (
        "descriptors", "Reserve of a worker, for responses with 503 when all others are in use."
    ),
    "requests_open_max": (
        "requests", "Open requests of one worker; more get a 503 with Retry-After. 0: no limit."
    ),
    "write_queue_bytes_max": ("bytes", "Queued output at which a streamed response has to wait."),
    "body_window_bytes": ("bytes", "Queued input at which reading of a streamed body pauses."),
    "files_open_max": ("files", "Files that one worker has open for responses; more: 503."),
    "files_cached_max": ("files", "Files that a static mount caches; beyond it the cache is emptied."),
    "files_cached_ms": ("milliseconds", "Time for which it caches them; 0: not at all."),
    "ranges_max": ("ranges", "Ranges of a file in one request; more: the whole file."),
    "compress_bytes_min": ("bytes", "Shorter responses are not compressed."),
    "compress_bytes_max": ("bytes", "Longer responses are not compressed, unless they are streamed."),
    "compress_streams_max": ("streams", "Streamed responses that are compressed at once; others are not."),
    "wsgi_write_bytes_max": (
        "bytes", "What `write()` may collect with --threads 0, where it cannot wait; more: it raises."
    ),
    "compiled_body_bytes_max": ("bytes", "Body that a compiled handler may write; longer: 500."),
    "compiled_run_ms_max": (
        "milliseconds",
        "A compiled handler that keeps the reactor's thread longer is named in the log; 0: never.",
    ),
    "goroutines_max": ("goroutines", "Goroutines of one worker, or of its threads; more get a 503."),
    "goroutine_stack_bytes": (
        "bytes", "Stack of one goroutine, of which only used pages take memory; a deeper one ends with a 500."
    ),
    "slow_handler_ms": (
        "milliseconds",
        "A handler that keeps the event loop's thread longer is named in the log, one per minute; 0: never.",
    ),
    "h2_streams_max": ("streams", "Open streams of one HTTP/2 connection; more are refused."),
    "h2_window_bytes": ("bytes", "Unread request bodies of one HTTP/2 connection; then the client waits."),
    "h2_discard_bytes_max": (
        "bytes", "Unread body of an HTTP/2 request that is discarded behind its response; more: reset."
    ),
    "h2_budget_ms": ("milliseconds", "Span over which HTTP/2 resets and idle frames are counted."),
    "h2_resets_max": ("streams", "HTTP/2 streams per span that end in a reset; more, if most do: closed."),
    "h2_idle_frames_max": ("frames", "HTTP/2 frames per span that advance no request; more: closed."),
    "h2_continuations_max": ("frames", "CONTINUATION frames of one HTTP/2 header section; more: closed."),
    "h2_stall_bytes_min": (
        "bytes", "Data that an HTTP/2 or HTTP/3 window must let through per --write-stall-ms; less: reset."
    ),
    "h3_streams_max": ("streams", "Open requests of one HTTP/3 connection; then the client waits."),
    "h3_budget_ms": ("milliseconds", "Span over which HTTP/3 resets and idle frames are counted."),
    "h3_resets_max": ("streams", "HTTP/3 requests per span that end in a reset; more, if most do: closed."),
    "h3_idle_frames_max": ("frames", "HTTP/3 frames per span that advance no request; more: closed."),
    "h3_table_bytes": ("bytes", "Dynamic table that an HTTP/3 client may fill; more: closed."),
    "h3_blocked_streams_max": (
        "streams", "HTTP/3 requests of one connection that wait for the dynamic table; more: closed."
    ),
    "webtransport_sessions_max": (
        "sessions", "Open WebTransport sessions of one connection; more are rejected."
    ),
    "webtransport_streams_max": (
        "streams", "Open streams of the WebTransport sessions of one connection; more are reset."
    ),
    "webtransport_early_max": (
        "streams", "Streams of one connection, and datagrams, that wait for their WebTransport sessions to "
        "be granted; more are dropped.",
    ),
    "webtransport_datagrams_max": (
        "datagrams", "Datagrams of a WebTransport session that wait for its handler; more: the oldest is "
        "dropped.",
    ),
    "webtransport_drain_ms": (
        "milliseconds", "Time in which clients end their WebTransport sessions when the server drains; then "
        "closed.",
    ),
    "tls_handshake_ms": ("milliseconds", "From accept to the end of a TLS handshake; longer: closed."),
    "tls_handshake_bytes_max": ("bytes", "One TLS handshake message; longer: an alert, closed."),
    "quic_handshakes_max": (
        "handshakes", "Handshakes of QUIC under way in one worker; beyond them clients get no response and "
        "try again.",
    ),
    "quic_retry_handshakes": (
        "handshakes", "Handshakes under way from which clients prove their address first (Retry); 0: always.",
    ),
    "quic_idle_ms": ("milliseconds", "Time without a packet of the client; then a QUIC connection ends."),
    "quic_datagrams_per_turn_max": ("datagrams", "UDP datagrams that one turn takes; others wait."),
    "quic_window_bytes": ("bytes", "Unread request bodies of one QUIC connection; then the client waits."),
    "quic_unacknowledged_bytes_max": (
        "bytes", "Response bytes of one QUIC connection without an acknowledgement; then responses wait."
    ),
    "quic_uni_streams_max": (
        "streams", "Unidirectional streams that a client has open; more: the connection is closed."
    ),
    "quic_datagram_bytes_max": (
        "bytes", "QUIC datagrams of one connection that wait for the application; more: the oldest are "
        "dropped.",
    ),
    "rpc_message_bytes_max": ("bytes", "One message of a remote call, or one batch; longer: closed."),
    "rpc_depth_max": ("levels", "Nested arrays and maps of such a message; more: closed."),
    "rpc_calls_open_max": ("calls", "Calls of one connection without a response; then reading pauses."),
    "rpc_message_ms": ("milliseconds", "From the first to the last byte of a message; longer: closed."),
    "rpc_idle_ms": ("milliseconds", "Time for which a connection may have no call; then it is closed."),
    "rpc_call_ms": ("milliseconds", "Duration of a call, unless its procedure sets another; 0: no limit."),
    "ws_message_bytes_max": ("bytes", "One WebSocket message, as sent and inflated; longer: closed, 1009."),
    "ws_fragments_max": ("frames", "Fragments of one WebSocket message; more: closed with 1008."),
    "ws_messages_max": (
        "messages", "Messages of one WebSocket per span; more: closed with 1008. 0: no limit."
    ),
    "ws_controls_max": (
        "frames", "Control frames of one WebSocket per span; more: closed with 1008. 0: no limit."
    ),
    "ws_rate_ms": ("milliseconds", "Span over which WebSocket messages and control frames are counted."),
    "ws_queue_max": ("messages", "Messages that wait for the application; then reading pauses."),
    "ws_queued_bytes_max": (
        "bytes", "All messages that wait for the application; the largest shares: closed with 1013."
    ),
    "ws_ping_interval_ms": ("milliseconds", "Time without traffic before a WebSocket is pinged; 0: never."),
    "ws_ping_timeout_ms": (
        "milliseconds", "Time to respond to a ping; longer: closed with 1011. 0: no limit."
    ),
    "ws_close_ms": ("milliseconds", "Time to respond to a close frame; then the connection is closed."),
    "ws_deflate_bytes_min": (
        "bytes", "Shorter WebSocket messages are not compressed; 0: compression is off."
    ),
    "room_queue_bytes_max": (
        "bytes", "Messages to rooms that wait for one other worker; more are lost for it and counted."
    ),
    "room_member_behind_ms": (
        "milliseconds", "Time for which more than --write-queue-bytes-max may wait for a member of a room; "
        "then it is too slow.",
    ),
    "room_member_bytes_max": ("bytes", "What may wait for a member of a room; with more it is too slow."),
}  # fmt: skip

LIMIT_ALIASES: Final[dict[str, tuple[tuple[str, float], ...]]] = {
    # Flags other servers have, and the factor from their unit to ours.
    "keep_alive_ms": (("--timeout-keep-alive", 1000), ("--keep-alive", 1000)),
    "connections_max": (("--worker-connections", 1), ("--backpressure", 1)),
    "requests_open_max": (("--limit-concurrency", 1),),
    "head_bytes_max": (("--h11-max-incomplete-event-size", 1),),
    "fields_max": (("--limit-request-fields", 1),),
    "target_bytes_max": (("--limit-request-line", 1),),
    "head_read_ms": (("--http1-header-read-timeout", 1),),
    "h2_streams_max": (("--http2-max-concurrent-streams", 1),),
    "h2_window_bytes": (("--http2-initial-connection-window-size", 1),),
    "body_window_bytes": (
        ("--http2-initial-window-size", 1), ("--http2-initial-stream-window-size", 1),
    ),
    "write_queue_bytes_max": (("--http2-max-send-buffer-size", 1),),
    "ws_message_bytes_max": (("--ws-max-size", 1), ("--websocket-max-message-size", 1)),
    "ws_queue_max": (("--ws-max-queue", 1),),
    "ws_ping_interval_ms": (("--ws-ping-interval", 1000),),
    "ws_ping_timeout_ms": (("--ws-ping-timeout", 1000),),
}  # fmt: skip

_NO_LIMIT: Final = (1 << 31) - 1

LIMIT_ZEROS: Final[dict[str, int | str]] = {
    # What 0 means to the server that has the flag; a text: refused, with the reason.
    "--keep-alive": 1,
    "--timeout-keep-alive": 1,
    "--limit-request-line": _NO_LIMIT,
    "--limit-request-fields": 32768,
    "--worker-connections": LIMITS["connections_max"],
    "--h11-max-incomplete-event-size": LIMITS["head_bytes_max"],
    "--websocket-max-message-size": _NO_LIMIT,
    "--limit-concurrency": "uvicorn would refuse every request with a 503; leave it out for no limit",
    "--ws-max-queue": "uvicorn would not read any message; leave it out for the default",
    "--ws-ping-timeout": "uvicorn would close a connection at its first ping; leave it out, or use "
    "--ws-ping-timeout-ms 0 for no limit",
    "--backpressure": "granian refuses it; leave it out for the default",
    "--http1-header-read-timeout": "granian refuses it; leave it out for the default",
    "--http2-max-concurrent-streams": "no client could send a request; leave it out for the default",
    "--http2-initial-connection-window-size": "granian refuses it; leave it out for the default",
    "--http2-initial-window-size": "no client could send content; leave it out for the default",
    "--http2-initial-stream-window-size": "granian refuses it; leave it out for the default",
    "--http2-max-send-buffer-size": "granian refuses it; leave it out for the default",
}  # fmt: skip

LIMITS_NOT_ZERO: Final = frozenset(
    {
        "head_bytes_max", "fields_max", "target_bytes_max", "pipeline_max", "connections_max",
        "h2_streams_max", "h2_window_bytes", "write_queue_bytes_max", "body_window_bytes", "ws_queue_max",
        "chunk_size_digits_max", "quic_handshakes_max", "quic_datagrams_per_turn_max", "quic_window_bytes",
        "quic_unacknowledged_bytes_max",
    }
)  # fmt: skip
"""With 0 nothing could be served, or nothing of a kind: it is refused."""
