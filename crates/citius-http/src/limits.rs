//! Every limit of the server: unit, default, origin, and what happens when it is reached.
//!
//! The constants are the defaults of [`Limits`], whose fields carry the same names in lower case
//! all the way up to the command line. A value of 0 in a `*_ms` field means "no deadline".

/// Bytes of one request head, request line to blank line. Origin: Apache 8 190 a line, nginx 4 × 8 KiB.
/// Exceeded: 431, close. Vector: `h1/limits/head_too_long.t`.
pub const HEAD_BYTES_MAX: u32 = 32 * 1024;

/// Field lines of one request head. Origin: hyper and Apache, 100.
/// Exceeded: 431, close. Vector: `h1/limits/too_many_fields.t`.
pub const FIELDS_MAX: u32 = 100;

/// Bytes of one request target. Origin: RFC 9112 §3 asks for at least 8 000.
/// Exceeded: 414, close. Vector: `h1/limits/target_too_long.t`.
pub const TARGET_BYTES_MAX: u32 = 8 * 1024;

/// Bytes of one request body, after transfer decoding, that the server holds until it is complete; a native route may
/// say another number. Origin: fastpysgi 10 MB, sanic 100 MB. Exceeded: 413, close. Test: `tests/abuse/test_body_bytes.py`.
pub const BODY_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Bytes of one request body that the application reads as it comes, of which the server holds [`BODY_WINDOW_BYTES`];
/// 0: any number. Origin: uvicorn and gunicorn have no such limit. Exceeded: 413, close. Test: `tests/abuse/test_body_bytes.py`.
pub const BODY_STREAMED_BYTES_MAX: u64 = 0;

/// Bytes of one worker's request bodies that are in temporary files, until a WSGI application is called with them on the
/// reactor's own thread. Origin: a quarter of a small machine's disk of 4 GiB; threads need no such files.
/// Exceeded: 413 for a body that is longer by itself, 503 otherwise. Test: `tests/wsgi/test_input.py`.
pub const BODY_SPOOLED_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Hexadecimal digits of one chunk size, leading zeros included. Origin: 2^64 has 16.
/// Exceeded: 400, close. Vector: `h1/limits/chunk_size_digits.t`.
pub const CHUNK_SIZE_DIGITS_MAX: u32 = 16;

/// Bytes of chunk extensions in one body. Origin: CVE-2023-39326 (Go) bounds them against the data.
/// Exceeded: 400, close. Vector: `h1/limits/chunk_extensions.t`.
pub const CHUNK_EXTENSION_BYTES_MAX: u32 = 4 * 1024;

/// Bytes of one trailer section. Origin: a quarter of a head.
/// Exceeded: 431, close. Vector: `h1/limits/trailers_too_long.t`.
pub const TRAILER_BYTES_MAX: u32 = 8 * 1024;

/// Requests of one connection that are taken but not answered. Origin: Japronto had 10, its benchmark 24.
/// Reached: reading stops until one is answered. Vector: `h1/limits/pipeline_full.t`.
pub const PIPELINE_MAX: u32 = 128;

/// Milliseconds from the first byte of a head (or from accept) to its end. Origin: granian 30 s.
/// Exceeded: 408 when a head has begun, silent close otherwise. Vector: `h1/limits/head_too_slow.t`.
pub const HEAD_READ_MS: u64 = 30_000;

/// Milliseconds a connection may stay without a request. Origin: nginx 75 s, above common proxies' 60 s.
/// Exceeded: silent close. Vector: `h1/limits/keep_alive_over.t`.
pub const KEEP_ALIVE_MS: u64 = 75_000;

/// Milliseconds over which the rate of an awaited body is judged. Origin: half of Kestrel's patience, doubled.
/// Exceeded without [`BODY_RATE_MIN_BYTES_PER_S`]: 408, close. Vector: `h1/limits/body_too_slow.t`.
pub const BODY_READ_MS: u64 = 10_000;

/// Bytes a second that an awaited body must bring on average over [`BODY_READ_MS`]. Origin: Kestrel 240.
/// Fallen below: 408, close. Vector: `h1/limits/body_too_slow.t`.
pub const BODY_RATE_MIN_BYTES_PER_S: u64 = 240;

/// Milliseconds a peer may take none of the bytes that wait for it. Origin: nginx `send_timeout`, 60 s, halved.
/// Exceeded: reset. Test: `tests/abuse/test_write_stall.py`.
pub const WRITE_STALL_MS: u64 = 30_000;

/// Milliseconds for a peer to read our last words after a refused request; behind the response to a request of HTTP/2,
/// those in which its body has to come at [`BODY_RATE_MIN_BYTES_PER_S`].
/// Origin: nginx `lingering_timeout`, 5 s. Exceeded: close. Test: `tests/abuse/test_linger.py`.
pub const LINGER_MS: u64 = 2_000;

/// Bytes of an unread body of HTTP/1.1 that are taken and dropped behind its response. Origin: hyper and Go have 256 KiB,
/// and a form with a picture is read. Exceeded: `connection: close`. Vector: `h1/body/unread_body.t`.
pub const DISCARD_BYTES_MAX: u64 = 2 * 1024 * 1024;

/// Open connections of one worker. Origin: half of a usual descriptor limit of 65 536.
/// Reached: 503 with Retry-After, close. Test: `tests/abuse/test_connections.py`.
pub const CONNECTIONS_MAX: u32 = 32 * 1024;

/// Descriptors that a worker holds in reserve. Origin: a 503 needs one.
/// Reached (all others are in use): idle connections are closed, then new ones get 503. Test: `tests/abuse/test_descriptors.py`.
pub const DESCRIPTORS_SPARE: u32 = 1;

/// Requests of one worker whose responses are not complete, over all interfaces and protocols; 0: any number.
/// Origin: uvicorn's `limit_concurrency`, off too; only the application's author knows.
/// Reached: 503 with Retry-After, the connection stays. Test: `tests/abuse/test_requests_open.py`.
pub const REQUESTS_OPEN_MAX: u32 = 0;

/// Bytes that may wait in one connection's write queue before a streaming response is held back, and
/// bytes of responses that may wait for an earlier one before no further request is taken.
/// Origin: asyncio and uvicorn, 64 KiB. Reached: the handler waits, reading stops. Test: `tests/abuse/test_backpressure.py`.
pub const WRITE_QUEUE_BYTES_MAX: u32 = 64 * 1024;

/// Bytes of a streamed request body that may wait for its handler. Origin: uvicorn, 64 KiB.
/// Reached: reading stops. Test: `tests/abuse/test_backpressure.py`.
pub const BODY_WINDOW_BYTES: u32 = 64 * 1024;

/// Files of one worker that are open at once for responses under way. Origin: an eighth of the
/// connections, for every slow reader may hold one, and some hold the same.
/// Reached: the file is refused; what sends it says how. Test: `crates/citius-reactor/tests/files.rs`.
pub const FILES_OPEN_MAX: u32 = 4 * 1024;

/// Files of a static mount that are remembered. Origin: nginx's documentation of `open_file_cache`, 1 000,
/// of which each may hold four descriptors here. Reached: all are forgotten and remembered anew.
/// Test: `tests/static/test_cache.py`.
pub const FILES_CACHED_MAX: u32 = 512;

/// Milliseconds for which they are. Origin: a second is soon enough for a deploy, and seldom enough to cost nothing.
/// Exceeded: the file is looked up again; 0 does so every time. Test: `tests/static/test_cache.py`.
pub const FILES_CACHED_MS: u64 = 1000;

/// Ranges of a file in one request. Origin: a reader that skips about asks for a few; Apache allows 200.
/// Exceeded: the whole file is sent. Test: `tests/static/test_ranges.py`.
pub const RANGES_MAX: u32 = 16;

/// Bytes of a response from which it is compressed. Origin: below a packet nothing is gained; nginx's
/// documentation and Apache's guides say 1 000. Fallen below: sent as it is. Test: `tests/static/test_compress.py`.
pub const COMPRESS_BYTES_MIN: u32 = 1024;

/// Bytes of a whole response up to which it is compressed. Origin: about ten milliseconds of the reactor's thread.
/// Exceeded: sent as it is. Test: `tests/static/test_compress.py`.
pub const COMPRESS_BYTES_MAX: u32 = 1024 * 1024;

/// Streamed responses of one worker that are compressed at once. Origin: each holds up to a megabyte.
/// Reached: further ones are sent as they are. Test: `tests/static/test_compress.py`.
pub const COMPRESS_STREAMS_MAX: u32 = 64;

/// Bytes of one response that a WSGI application may `write()` on the reactor's own thread, where the call cannot wait
/// until they have left; threads and greenlets wait. Origin: as much as a request's body.
/// Exceeded: `write()` raises, and the response is cut. Test: `tests/wsgi/test_responses.py`.
pub const WSGI_WRITE_BYTES_MAX: u32 = 16 * 1024 * 1024;

/// Bytes of a response's body that a compiled handler may write. Origin: four times [`BODY_BYTES_MAX`]; more is better streamed.
/// Exceeded: 500, and a line in the log. Test: `tests/compiled/test_misuse.py`.
pub const COMPILED_BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Goroutines of one worker, or of its pool of threads, that have not ended. Origin: a gigabyte at eight kilobytes each.
/// Exceeded: 503 for a request, an error where one is started. Test: `tests/goroutines/test_faults.py`.
pub const GOROUTINES_MAX: u32 = 128 * 1024;

/// Bytes of the stack of a goroutine, of which only those pages that were used take memory. Origin: what `printf`, a regular
/// expression or a few frames of an interpreter need, eight times over. Exceeded: 500, and a line in the log.
/// Test: `tests/goroutines/test_faults.py`.
pub const GOROUTINE_STACK_BYTES: u64 = 256 * 1024;

/// Milliseconds that a compiled handler may keep the reactor's thread. Origin: what people notice of a delay
/// is ten times as long. Exceeded: a line in the log names it, at most one in ten seconds; 0: never.
/// Test: `tests/compiled/test_misuse.py`.
pub const COMPILED_RUN_MS_MAX: u64 = 10;

/// Milliseconds that a handler may keep the event loop's thread without an `await`. Origin: what people notice of a
/// delay. Exceeded: a line in the log names it, at most one a minute; 0: never. Test: `tests/observe/test_slow.py`.
pub const SLOW_HANDLER_MS: u64 = 100;

/// Streams of one HTTP/2 connection that are open at once. Origin: RFC 9113 §6.5.2 asks for 100 at least, h2o 100, nghttpd 100.
/// Reached: the stream is refused, to be tried again (`REFUSED_STREAM`). Test: `crates/citius-h2/src/tests/budgets.rs`.
pub const H2_STREAMS_MAX: u32 = 128;

/// Bytes of a request of HTTP/2 that are read and dropped behind its response. Origin: an upload of 100 MB; curl 7.88 and
/// httpx fail if a request is reset that they have not sent to its end. Exceeded: the stream is reset (`NO_ERROR`).
/// Test: `crates/citius-h2/src/tests/exchange.rs`.
pub const H2_DISCARD_BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Bytes of request bodies that one HTTP/2 connection may send ahead of their handlers, over all its streams; each has
/// [`BODY_WINDOW_BYTES`]. Origin: hyper, 1 MiB. Reached: the client has to wait; beyond: the connection
/// ends (`FLOW_CONTROL_ERROR`). Test: `crates/citius-h2/src/tests/flow.rs`.
pub const H2_WINDOW_BYTES: u32 = 1024 * 1024;

/// Milliseconds over which the frames of [`H2_RESETS_MAX`] and [`H2_IDLE_FRAMES_MAX`] are counted; 0: the connection's life.
/// Origin: long enough to tell a habit from a moment. Exceeded: counting starts anew. Test: `crates/citius-h2/src/tests/budgets.rs`.
pub const H2_BUDGET_MS: u64 = 10_000;

/// Streams of one HTTP/2 connection that end in a reset, by the client or for its mistake, within [`H2_BUDGET_MS`]; beyond,
/// half of its requests may. Origin: CVE-2023-44487 and CVE-2025-8671; a browser resets a page's worth at most.
/// Exceeded: `ENHANCE_YOUR_CALM`, close. Test: `crates/citius-h2/src/tests/budgets.rs`.
pub const H2_RESETS_MAX: u32 = 200;

/// Frames of one HTTP/2 connection that bring no request on (settings, pings, priorities, empty data, unknown ones, windows
/// opened by less than 1 KiB of data) within [`H2_BUDGET_MS`]. Origin: CVE-2019-9511 to CVE-2019-9518.
/// Exceeded: `ENHANCE_YOUR_CALM`, close. Test: `crates/citius-h2/src/tests/budgets.rs`.
pub const H2_IDLE_FRAMES_MAX: u32 = 2000;

/// Frames that one HTTP/2 head may be continued in. Origin: CVE-2024-27316; two would do for [`HEAD_BYTES_MAX`].
/// Exceeded: `ENHANCE_YOUR_CALM`, close. Test: `crates/citius-h2/src/tests/budgets.rs`.
pub const H2_CONTINUATIONS_MAX: u32 = 16;

/// Bytes that a client must let through of an HTTP/2 or HTTP/3 stream which waits for its window, every [`WRITE_STALL_MS`].
/// Origin: CVE-2019-9517; a window worth its frame. Fallen below: the stream is reset. Test: `crates/citius-h2/src/tests/budgets.rs`.
pub const H2_STALL_BYTES_MIN: u32 = 1024;

/// Requests of one HTTP/3 connection that are open at once. Origin: RFC 9114 §6.1 asks for 100 at least, and QUIC has places
/// for all of them from the start: with those of [`QUIC_UNI_STREAMS_MAX`] 112, one more would double the table.
/// Reached: QUIC holds the client back; beyond: `H3_REQUEST_REJECTED`. Test: `crates/citius-h3/src/tests/budgets.rs`.
pub const H3_STREAMS_MAX: u32 = 100;

/// Milliseconds over which [`H3_RESETS_MAX`] and [`H3_IDLE_FRAMES_MAX`] are counted; 0: the connection's life.
/// Origin: as [`H2_BUDGET_MS`]. Exceeded: counting starts anew. Test: `crates/citius-h3/src/tests/budgets.rs`.
pub const H3_BUDGET_MS: u64 = 10_000;

/// Requests of one HTTP/3 connection that end in a reset, by the client or for its mistake, within [`H3_BUDGET_MS`]; beyond,
/// half of them may. Origin: as [`H2_RESETS_MAX`]. Exceeded: `H3_EXCESSIVE_LOAD`, close. Test: `crates/citius-h3/src/tests/budgets.rs`.
pub const H3_RESETS_MAX: u32 = 200;

/// Frames, streams, capsules and instructions of one HTTP/3 connection that bring no request on, within [`H3_BUDGET_MS`].
/// Origin: as [`H2_IDLE_FRAMES_MAX`]. Exceeded: `H3_EXCESSIVE_LOAD`, close. Test: `crates/citius-h3/src/tests/budgets.rs`.
pub const H3_IDLE_FRAMES_MAX: u32 = 2000;

/// Bytes of the dynamic table that a client of HTTP/3 may fill; 0: none. Origin: HPACK's 4096, which Chromium and Firefox
/// use of what they are offered. Exceeded: `QPACK_ENCODER_STREAM_ERROR`, close. Test: `crates/citius-h3/src/tests/budgets.rs`.
pub const H3_TABLE_BYTES: u32 = 4096;

/// Requests of one HTTP/3 connection whose heads may wait for the dynamic table, each with up to [`HEAD_BYTES_MAX`].
/// Origin: nghttp3 and quiche offer 100, Chromium 100; a head waits for one lost packet.
/// Exceeded: `QPACK_DECOMPRESSION_FAILED`, close. Test: `crates/citius-h3/src/tests/budgets.rs`.
pub const H3_BLOCKED_STREAMS_MAX: u32 = 16;

/// WebTransport sessions of one connection that are open at once. Origin: a page has one or two.
/// Exceeded: `H3_REQUEST_REJECTED`. Test: `crates/citius-h3/src/tests/sessions.rs`.
pub const WEBTRANSPORT_SESSIONS_MAX: u32 = 16;

/// Streams of WebTransport sessions of one connection that are open at once, opened by client or server. Origin: twice
/// [`H3_STREAMS_MAX`]. Exceeded: the stream is reset. Test: `crates/citius-h3/src/tests/sessions.rs`.
pub const WEBTRANSPORT_STREAMS_MAX: u32 = 256;

/// Streams, and datagrams, of one connection that wait for their WebTransport sessions to be granted. Origin: what a client sends in
/// the round trip of its request. Exceeded: the stream is reset, the datagram dropped. Test: `crates/citius-h3/src/tests/sessions.rs`.
pub const WEBTRANSPORT_EARLY_MAX: u32 = 16;

/// Datagrams of one WebTransport session that wait for the application. Origin: a frame's worth of a game or a call, at
/// hundreds a second. Exceeded: the oldest is dropped. Test: `tests/http3/test_webtransport_attacks.py`.
pub const WEBTRANSPORT_DATAGRAMS_MAX: u32 = 256;

/// Time in which clients bring their WebTransport sessions to an end when the server drains, before it closes them.
/// Origin: several round trips of a slow network; `drain_s` is 30 s. Reached: closed with 1012. Test: `tests/http3/test_webtransport.py`.
pub const WEBTRANSPORT_DRAIN_MS: u64 = 2000;

/// Milliseconds from accept to the end of a TLS handshake. Origin: well above a slow mobile network's three round trips;
/// nginx waits 60 s. Exceeded: close. Test: `tests/tls/test_misbehaving_clients.py`.
pub const TLS_HANDSHAKE_MS: u64 = 10_000;

/// Bytes of a TLS handshake message that wait for their rest, at least a record's. Origin: a `ClientHello` with
/// post-quantum keys has 2 KiB, a client's chain of certificates 8 KiB.
/// Exceeded: an alert, close. Test: `crates/citius-tls/src/tests.rs`.
pub const TLS_HANDSHAKE_BYTES_MAX: u32 = 32 * 1024;

/// Handshakes of QUIC under way in one worker, those that wait for their turn included. Origin: a second of a core's
/// handshakes. Reached: further clients get no response, and try again. Test: `tests/http3/test_limits.py`.
pub const QUIC_HANDSHAKES_MAX: u32 = 1024;

/// Handshakes of QUIC under way from which a client has to prove its address first (RFC 9000 §8.1.2). Origin: `HAProxy` 100.
/// Reached: Retry. Test: `tests/http3/test_limits.py`.
pub const QUIC_RETRY_HANDSHAKES: u32 = 100;

/// Milliseconds for which nothing may come over a QUIC connection. Origin: RFC 9308 §3.2 and h2o, 30 s.
/// Exceeded: the connection is forgotten. Test: `tests/http3/test_limits.py`.
pub const QUIC_IDLE_MS: u64 = 30_000;

/// Datagrams that one turn takes from a UDP socket. Origin: what a turn's time is enough for.
/// Reached: the others wait for the next turn. Test: `tests/http3/test_limits.py`.
pub const QUIC_DATAGRAMS_PER_TURN_MAX: u32 = 1024;

/// Bytes of request bodies that a client may send over one QUIC connection before they are read, on all streams.
/// Origin: [`H2_WINDOW_BYTES`]. Reached: the client waits. Test: `tests/http3/test_limits.py`.
pub const QUIC_WINDOW_BYTES: u32 = 1024 * 1024;

/// Bytes of responses that one QUIC connection holds until the client has acknowledged them. Origin: 100 Mbit/s over
/// 100 ms. Reached: what follows waits. Test: `tests/http3/test_limits.py`.
pub const QUIC_UNACKNOWLEDGED_BYTES_MAX: u32 = 1280 * 1024;

/// Unidirectional streams that a client of QUIC may have open. Origin: three of HTTP/3, and some more; see [`H3_STREAMS_MAX`].
/// Exceeded: the connection is closed. Test: `tests/http3/test_limits.py`.
pub const QUIC_UNI_STREAMS_MAX: u32 = 12;

/// Bytes of DATAGRAM frames of one connection that wait for the application. Origin: a receive buffer of a UDP socket.
/// Exceeded: the oldest are dropped. Test: `tests/http3/test_limits.py`.
pub const QUIC_DATAGRAM_BYTES_MAX: u32 = 128 * 1024;

/// Bytes of one message of a remote procedure call, or of one batch. Origin: [`BODY_BYTES_MAX`].
/// Exceeded: an error, close. Test: `crates/citius-rpc/src/tests.rs`.
pub const RPC_MESSAGE_BYTES_MAX: u32 = 16 * 1024 * 1024;

/// Arrays and maps of such a message that are within each other. Origin: half of `serde_json`'s 128.
/// Exceeded: an error, close. Test: `crates/citius-rpc/src/tests.rs`.
pub const RPC_DEPTH_MAX: u32 = 64;

/// Calls of one connection that are taken but not answered, and calls of one batch. Origin: gRPC servers have 100
/// streams, for browsers; between services a thousand threads may share a connection.
/// Reached: reading stops until one is answered; the batch is refused. Test: `crates/citius-rpc/src/tests.rs`.
pub const RPC_CALLS_OPEN_MAX: u32 = 1024;

/// Milliseconds from the first byte of a message to its last. Origin: [`HEAD_READ_MS`].
/// Exceeded: an error, close. Test: `crates/citius-rpc/src/tests.rs`.
pub const RPC_MESSAGE_MS: u64 = 30_000;

/// Milliseconds a connection may stay without a call. Origin: services keep their connections; ten minutes is
/// below what firewalls forget. Exceeded: goodbye, close. Test: `crates/citius-rpc/src/tests.rs`.
pub const RPC_IDLE_MS: u64 = 600_000;

/// Milliseconds a call may take, unless its procedure says otherwise. Origin: none; callers have deadlines of their own
/// and cancel. Exceeded: an error, and the procedure is cancelled. Test: `crates/citius-rpc/src/tests.rs`.
pub const RPC_CALL_MS: u64 = 0;

/// Bytes of one WebSocket message, as sent and inflated. Origin: uvicorn's `--ws-max-size`, 16 MiB.
/// Exceeded: close code 1009. Test: `tests/abuse/test_ws.py`.
pub const WS_MESSAGE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Fragments of one WebSocket message. Origin: 4 MiB in pieces of 64 bytes, which Autobahn sends, twice.
/// Exceeded: close code 1008. Test: `tests/abuse/test_ws.py`.
pub const WS_FRAGMENTS_MAX: u32 = 128 * 1024;

/// Messages of one WebSocket within [`WS_RATE_MS`]; 0: any number. Origin: only the application's author knows.
/// Exceeded: close code 1008. Test: `tests/abuse/test_ws.py`.
pub const WS_MESSAGES_MAX: u32 = 0;

/// Pings, pongs and close frames of one WebSocket within [`WS_RATE_MS`]; 0: any number. Origin: a hundred a second
/// for ten seconds; clients send one every twenty. Exceeded: close code 1008. Test: `tests/abuse/test_ws.py`.
pub const WS_CONTROLS_MAX: u32 = 1000;

/// Milliseconds over which [`WS_MESSAGES_MAX`] and [`WS_CONTROLS_MAX`] are counted. Origin: as [`H2_BUDGET_MS`].
/// Exceeded: counting starts anew. Test: `tests/abuse/test_ws.py`.
pub const WS_RATE_MS: u64 = 10_000;

/// Messages of one WebSocket that may wait for the application, and [`BODY_WINDOW_BYTES`] of them.
/// Origin: uvicorn's `--ws-max-queue`, 32. Reached: reading stops. Test: `tests/abuse/test_ws.py`.
pub const WS_QUEUE_MAX: u32 = 32;

/// Bytes of WebSocket messages of one worker that wait for the application, over all connections: compressed, 16 KiB are
/// enough for [`WS_MESSAGE_BYTES_MAX`]. Origin: sixteen of those. Exceeded: the next message of a socket for which more
/// than an equal share waits (this by [`CONNECTIONS_MAX`]) is dropped; close code 1013. Test: `tests/abuse/test_ws.py`.
pub const WS_QUEUED_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// Milliseconds without a byte from a WebSocket's peer until it is pinged; 0: never. Origin: uvicorn, 20 s.
/// Exceeded: a ping is sent. Test: `tests/abuse/test_ws.py`.
pub const WS_PING_INTERVAL_MS: u64 = 20_000;

/// Milliseconds a WebSocket's peer has to answer a ping with any byte; 0: for ever. Origin: uvicorn, 20 s.
/// Exceeded: close code 1011. Test: `tests/abuse/test_ws.py`.
pub const WS_PING_TIMEOUT_MS: u64 = 20_000;

/// Milliseconds a WebSocket's peer has to answer a close frame. Origin: the `websockets` library, 10 s.
/// Exceeded: the connection is closed without one. Test: `tests/abuse/test_ws.py`.
pub const WS_CLOSE_MS: u64 = 10_000;

/// Bytes of a WebSocket message from which it is compressed for clients that accept it; 0: never, nor is it negotiated.
/// Origin: below it a frame saves no packet. Fallen below: sent as it is. Test: `tests/abuse/test_ws.py`.
pub const WS_DEFLATE_BYTES_MIN: u32 = 256;

/// Bytes of messages to rooms that may wait for one other worker, and of those from other workers that may wait for
/// this one's reactors; each message counts 128 more. Origin: four of [`WS_MESSAGE_BYTES_MAX`], above a burst of 100 000 short ones.
/// Exceeded: the message is lost for that worker, and counted in `Room.missed`; nothing is read from the other
/// workers. Test: `tests/server/test_rooms.py`.
pub const ROOM_QUEUE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Milliseconds for which more than [`WRITE_QUEUE_BYTES_MAX`] may wait for a member of a room without a pause: one that reads gets
/// below it in between, also where processor time is scarce. Origin: one second would be the pause of a garbage collector.
/// Exceeded: the member is closed with 1013, or misses messages. Test: `tests/server/test_room_members.py`.
pub const ROOM_MEMBER_BEHIND_MS: u64 = 5_000;

/// Bytes that may wait for a member of a room. Origin: to as much Linux lets the buffer of a socket grow.
/// Exceeded: as for [`ROOM_MEMBER_BEHIND_MS`]. Test: `tests/server/test_room_members.py`.
pub const ROOM_MEMBER_BYTES_MAX: u32 = 4 * 1024 * 1024;

const _: () = assert!(
    H2_WINDOW_BYTES >= BODY_WINDOW_BYTES,
    "one stream may fill its window"
);
const _: () = assert!(
    COMPRESS_BYTES_MIN < COMPRESS_BYTES_MAX,
    "something is compressed"
);
const _: () = assert!(
    TARGET_BYTES_MAX < HEAD_BYTES_MAX,
    "a target alone may not fill a head"
);
const _: () = assert!(
    TRAILER_BYTES_MAX < HEAD_BYTES_MAX,
    "trailers are the smaller section"
);
const _: () = assert!(
    DISCARD_BYTES_MAX < BODY_BYTES_MAX,
    "dropping is cheaper than taking"
);
const _: () = assert!(
    4 * FILES_CACHED_MAX < FILES_OPEN_MAX,
    "what is remembered leaves room for others"
);
const _: () = assert!(PIPELINE_MAX >= 24, "Japronto's own benchmark pipelines 24");
const _: () = assert!(
    HEAD_READ_MS < KEEP_ALIVE_MS,
    "an idle peer is more welcome than a slow one"
);

/// Whether `value` has reached `limit`. A limit of 0, which stands for none, is never reached.
#[inline]
pub const fn reaches(value: u64, limit: u64) -> bool {
    // 0 becomes the largest number.
    value > limit.wrapping_sub(1)
}

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident : $kind:ty = $default:ident),+ $(,)?) => {
        /// The limits of one server, in force for all of its connections.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $(#[doc = concat!("See [`", stringify!($default), "`].")] pub $field: $kind,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl Limits {
            /// Bytes that a body may have which the application reads as it comes.
            pub fn streamed_body_max(&self) -> u64 {
                match self.body_streamed_bytes_max {
                    0 => u64::MAX,
                    bytes => bytes,
                }
            }

            /// The names of all limits, in the order of this file.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field),)+];

            /// Sets the limit called `name`; `None` if there is no such limit or it cannot hold `value`.
            pub fn set(&mut self, name: &str, value: u64) -> Option<()> {
                match name {
                    $(stringify!($field) => self.$field = <$kind>::try_from(value).ok()?,)+
                    _ => return None,
                }
                Some(())
            }

            /// The limit called `name`.
            pub fn value_of(&self, name: &str) -> Option<u64> {
                match name {
                    $(stringify!($field) => Some(u64::from(self.$field)),)+
                    _ => None,
                }
            }
        }
    };
}

limits! {
    head_bytes_max: u32 = HEAD_BYTES_MAX,
    fields_max: u32 = FIELDS_MAX,
    target_bytes_max: u32 = TARGET_BYTES_MAX,
    body_bytes_max: u64 = BODY_BYTES_MAX,
    body_streamed_bytes_max: u64 = BODY_STREAMED_BYTES_MAX,
    body_spooled_bytes_max: u64 = BODY_SPOOLED_BYTES_MAX,
    chunk_size_digits_max: u32 = CHUNK_SIZE_DIGITS_MAX,
    chunk_extension_bytes_max: u32 = CHUNK_EXTENSION_BYTES_MAX,
    trailer_bytes_max: u32 = TRAILER_BYTES_MAX,
    pipeline_max: u32 = PIPELINE_MAX,
    head_read_ms: u64 = HEAD_READ_MS,
    keep_alive_ms: u64 = KEEP_ALIVE_MS,
    body_read_ms: u64 = BODY_READ_MS,
    body_rate_min_bytes_per_s: u64 = BODY_RATE_MIN_BYTES_PER_S,
    write_stall_ms: u64 = WRITE_STALL_MS,
    linger_ms: u64 = LINGER_MS,
    discard_bytes_max: u64 = DISCARD_BYTES_MAX,
    connections_max: u32 = CONNECTIONS_MAX,
    descriptors_spare: u32 = DESCRIPTORS_SPARE,
    requests_open_max: u32 = REQUESTS_OPEN_MAX,
    write_queue_bytes_max: u32 = WRITE_QUEUE_BYTES_MAX,
    body_window_bytes: u32 = BODY_WINDOW_BYTES,
    files_open_max: u32 = FILES_OPEN_MAX,
    files_cached_max: u32 = FILES_CACHED_MAX,
    files_cached_ms: u64 = FILES_CACHED_MS,
    ranges_max: u32 = RANGES_MAX,
    compress_bytes_min: u32 = COMPRESS_BYTES_MIN,
    compress_bytes_max: u32 = COMPRESS_BYTES_MAX,
    compress_streams_max: u32 = COMPRESS_STREAMS_MAX,
    wsgi_write_bytes_max: u32 = WSGI_WRITE_BYTES_MAX,
    compiled_body_bytes_max: u64 = COMPILED_BODY_BYTES_MAX,
    compiled_run_ms_max: u64 = COMPILED_RUN_MS_MAX,
    goroutines_max: u32 = GOROUTINES_MAX,
    goroutine_stack_bytes: u64 = GOROUTINE_STACK_BYTES,
    slow_handler_ms: u64 = SLOW_HANDLER_MS,
    h2_streams_max: u32 = H2_STREAMS_MAX,
    h2_window_bytes: u32 = H2_WINDOW_BYTES,
    h2_discard_bytes_max: u64 = H2_DISCARD_BYTES_MAX,
    h2_budget_ms: u64 = H2_BUDGET_MS,
    h2_resets_max: u32 = H2_RESETS_MAX,
    h2_idle_frames_max: u32 = H2_IDLE_FRAMES_MAX,
    h2_continuations_max: u32 = H2_CONTINUATIONS_MAX,
    h2_stall_bytes_min: u32 = H2_STALL_BYTES_MIN,
    h3_streams_max: u32 = H3_STREAMS_MAX,
    h3_budget_ms: u64 = H3_BUDGET_MS,
    h3_resets_max: u32 = H3_RESETS_MAX,
    h3_idle_frames_max: u32 = H3_IDLE_FRAMES_MAX,
    h3_table_bytes: u32 = H3_TABLE_BYTES,
    h3_blocked_streams_max: u32 = H3_BLOCKED_STREAMS_MAX,
    webtransport_sessions_max: u32 = WEBTRANSPORT_SESSIONS_MAX,
    webtransport_streams_max: u32 = WEBTRANSPORT_STREAMS_MAX,
    webtransport_early_max: u32 = WEBTRANSPORT_EARLY_MAX,
    webtransport_datagrams_max: u32 = WEBTRANSPORT_DATAGRAMS_MAX,
    webtransport_drain_ms: u64 = WEBTRANSPORT_DRAIN_MS,
    tls_handshake_ms: u64 = TLS_HANDSHAKE_MS,
    tls_handshake_bytes_max: u32 = TLS_HANDSHAKE_BYTES_MAX,
    quic_handshakes_max: u32 = QUIC_HANDSHAKES_MAX,
    quic_retry_handshakes: u32 = QUIC_RETRY_HANDSHAKES,
    quic_idle_ms: u64 = QUIC_IDLE_MS,
    quic_datagrams_per_turn_max: u32 = QUIC_DATAGRAMS_PER_TURN_MAX,
    quic_window_bytes: u32 = QUIC_WINDOW_BYTES,
    quic_unacknowledged_bytes_max: u32 = QUIC_UNACKNOWLEDGED_BYTES_MAX,
    quic_uni_streams_max: u32 = QUIC_UNI_STREAMS_MAX,
    quic_datagram_bytes_max: u32 = QUIC_DATAGRAM_BYTES_MAX,
    rpc_message_bytes_max: u32 = RPC_MESSAGE_BYTES_MAX,
    rpc_depth_max: u32 = RPC_DEPTH_MAX,
    rpc_calls_open_max: u32 = RPC_CALLS_OPEN_MAX,
    rpc_message_ms: u64 = RPC_MESSAGE_MS,
    rpc_idle_ms: u64 = RPC_IDLE_MS,
    rpc_call_ms: u64 = RPC_CALL_MS,
    ws_message_bytes_max: u64 = WS_MESSAGE_BYTES_MAX,
    ws_fragments_max: u32 = WS_FRAGMENTS_MAX,
    ws_messages_max: u32 = WS_MESSAGES_MAX,
    ws_controls_max: u32 = WS_CONTROLS_MAX,
    ws_rate_ms: u64 = WS_RATE_MS,
    ws_queue_max: u32 = WS_QUEUE_MAX,
    ws_queued_bytes_max: u64 = WS_QUEUED_BYTES_MAX,
    ws_ping_interval_ms: u64 = WS_PING_INTERVAL_MS,
    ws_ping_timeout_ms: u64 = WS_PING_TIMEOUT_MS,
    ws_close_ms: u64 = WS_CLOSE_MS,
    ws_deflate_bytes_min: u32 = WS_DEFLATE_BYTES_MIN,
    room_queue_bytes_max: u64 = ROOM_QUEUE_BYTES_MAX,
    room_member_behind_ms: u64 = ROOM_MEMBER_BEHIND_MS,
    room_member_bytes_max: u32 = ROOM_MEMBER_BYTES_MAX,
}
