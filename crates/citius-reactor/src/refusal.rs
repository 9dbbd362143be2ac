//! The response to a connection above `connections_max`, which is closed afterwards.

/// In clear text: a whole HTTP/1.1 response.
pub(crate) const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\
    content-type: text/plain; charset=utf-8\r\ncontent-length: 20\r\nconnection: close\r\n\r\n\
    server is overloaded";

/// Where TLS is expected: a fatal alert, `internal_error` (RFC 8446 §6.2), in clear text.
pub(crate) const OVERLOADED: &[u8] = &[21, 3, 3, 0, 2, 2, 80];
