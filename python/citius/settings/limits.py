"""The limits as options: their units, help and the flags that other servers have for them.

Names and defaults come from the extension (``_core.LIMITS``, crates/citius-http/src/limits.rs).
"""

from __future__ import annotations

from typing import Final

LIMIT_HELP: Final[dict[str, tuple[str, str]]] = {
    "head_bytes_max": ("bytes", "One request head; more is answered with 431."),
    "fields_max": ("fields", "Field lines of one head; more are answered with 431."),
    "target_bytes_max": ("bytes", "One request target; more is answered with 414."),
    "body_bytes_max": (
        "bytes", "One request body that the server holds until its handler is called; more is answered with "
        "413. A route's body_bytes_max= replaces it. Given alone, it holds for streamed bodies too.",
    ),
    "body_streamed_bytes_max": (
        "bytes", "One request body that the application reads as it comes (ASGI, WSGI, stream=True); more "
        "is answered with 413. 0: any number.",
    ),
    "body_spooled_bytes_max": (
        "bytes", "Bodies of one worker in temporary files, where long ones wait for a WSGI application with "
        "--threads 0; more are answered with 413 or 503.",
    ),
    "chunk_size_digits_max": ("digits", "Hexadecimal digits of a chunk size; more: 400."),
    "chunk_extension_bytes_max": ("bytes", "Chunk extensions in one body; more: 400."),
    "trailer_bytes_max": ("bytes", "One trailer section; more is answered with 431."),
    "pipeline_max": ("requests", "Unanswered requests of one connection; then reading pauses."),
    "head_read_ms": ("milliseconds", "From the first byte of a head to its last; longer: 408."),
    "keep_alive_ms": ("milliseconds", "A connection may idle this long; then it is closed."),
    "body_read_ms": ("milliseconds", "Span over which the rate of a body is judged."),
    "body_rate_min_bytes_per_s": (
        "bytes per second", "What a body must bring on average; less is answered with 408."
    ),
    "write_stall_ms": ("milliseconds", "A peer may take nothing for this long; then: reset."),
    "linger_ms": ("milliseconds", "Patience for a refused peer to read its answer."),
    "discard_bytes_max": ("bytes", "Unread body dropped to keep a connection; more: close."),
    "connections_max": ("connections", "Open connections of one worker; more get 503."),
    "descriptors_spare": (
        "descriptors", "Held in reserve by a worker, to answer 503 when all others are in use."
    ),
    "requests_open_max": (
        "requests", "Unanswered requests of one worker; more get 503 with Retry-After. 0: any number."
    ),
    "write_queue_bytes_max": ("bytes", "Waiting output that holds a streaming answer back."),
    "body_window_bytes": ("bytes", "Waiting input that holds a streaming body back."),
    "files_open_max": ("files", "Files open for answers of one worker; more are answered with 503."),
    "files_cached_max": ("files", "Files a static mount remembers; beyond it all are forgotten."),
    "files_cached_ms": ("milliseconds", "How long it does; 0 looks every time."),
    "ranges_max": ("ranges", "Ranges of a file in one request; more: the whole file."),
    "compress_bytes_min": ("bytes", "Answers that are shorter are not compressed."),
    "compress_bytes_max": ("bytes", "Whole answers that are longer are not compressed."),
    "compress_streams_max": ("streams", "Streamed answers compressed at once; more go as they are."),
    "wsgi_write_bytes_max": (
        "bytes", "What `write()` may collect with --threads 0, where it cannot wait; beyond, it raises."
    ),
    "compiled_body_bytes_max": ("bytes", "Bodies that a compiled handler may write; beyond, 500."),
    "compiled_run_ms_max": (
        "milliseconds",
        "A compiled handler that keeps the reactor's thread longer is named in the log; 0: never.",
    ),
    "slow_handler_ms": (
        "milliseconds",
        "A handler that keeps the event loop's thread longer is named in the log, one a minute; 0: never.",
    ),
    "h2_streams_max": ("streams", "Open streams of one HTTP/2 connection; more are refused."),
    "h2_window_bytes": ("bytes", "Bodies under way on one HTTP/2 connection; then it waits."),
    "h2_budget_ms": ("milliseconds", "Span over which HTTP/2 resets and idle frames are counted."),
    "h2_resets_max": ("streams", "HTTP/2 streams that end in a reset per span; more: closed."),
    "h2_idle_frames_max": ("frames", "HTTP/2 frames that bring no request on per span; more: closed."),
    "h2_continuations_max": ("frames", "CONTINUATION frames of one HTTP/2 head; more: closed."),
    "h2_stall_bytes_min": (
        "bytes", "What a closed HTTP/2 window must let through per write stall; less: reset."
    ),
    "tls_handshake_ms": ("milliseconds", "From accept to the end of a TLS handshake; longer: closed."),
    "tls_handshake_bytes_max": ("bytes", "One TLS handshake message; more: an alert, closed."),
    "rpc_message_bytes_max": ("bytes", "One message of a remote call, or one batch; more: closed."),
    "rpc_depth_max": ("levels", "Arrays and maps of such a message within each other; more: closed."),
    "rpc_calls_open_max": ("calls", "Calls of one connection without an answer; then reading pauses."),
    "rpc_message_ms": ("milliseconds", "From the first byte of a message to its last; then closed."),
    "rpc_idle_ms": ("milliseconds", "A connection without a call; then closed."),
    "rpc_call_ms": ("milliseconds", "A call, unless its procedure says otherwise; 0: no limit."),
    "ws_message_bytes_max": ("bytes", "One WebSocket message, as sent and inflated; more: closed, 1009."),
    "ws_fragments_max": ("frames", "Fragments of one WebSocket message; more: closed with 1008."),
    "ws_messages_max": (
        "messages", "Messages of one WebSocket per span; more: closed with 1008. 0: any number."
    ),
    "ws_controls_max": (
        "frames", "Control frames of one WebSocket per span; more: closed with 1008. 0: any number."
    ),
    "ws_rate_ms": ("milliseconds", "That span."),
    "ws_queue_max": ("messages", "Messages that wait for the application; then reading pauses."),
    "ws_queued_bytes_max": (
        "bytes", "All messages that wait for the application; sockets with most of them: closed, 1013."
    ),
    "ws_ping_interval_ms": ("milliseconds", "Silence after which a WebSocket is pinged; 0: never."),
    "ws_ping_timeout_ms": (
        "milliseconds", "Time to answer a ping; longer: closed with 1011. 0: for ever."
    ),
    "ws_close_ms": ("milliseconds", "Time to answer a close frame; then the connection is closed."),
    "ws_deflate_bytes_min": (
        "bytes", "Shorter WebSocket messages are not compressed; 0: none, nor is it negotiated."
    ),
    "room_queue_bytes_max": (
        "bytes", "Messages to rooms that wait for one other worker; more are lost for it, and counted."
    ),
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
