//! The response to a connection above `connections_max`, which is closed afterwards.

/// In clear text: a whole HTTP/1.1 response.
pub(crate) const HTTP_REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-type: text/plain; charset=utf-8\r\ncontent-length: 20\r\nconnection: close\r\n\r\n\
    server is overloaded";

/// Where TLS is expected: a fatal alert, `internal_error` (RFC 8446 §6.2), in clear text.
pub(crate) const OVERLOADED: &[u8] = &[21, 3, 3, 0, 2, 2, 80];

/// Sent to a client that calls procedures by JSON without TLS; one of MessagePack gets TLS' alert.
pub(crate) const RPC_CLEAR_TEXT: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\
    \"message\":\"this port speaks TLS\",\"data\":{\"type\":\"InvalidRequest\"}}}\n";

/// Sent to a client of HTTP without TLS.
pub(crate) const HTTP_CLEAR_TEXT: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 45\r\nconnection: close\r\n\r\nthis port speaks HTTPS: use https:// instead\n";
