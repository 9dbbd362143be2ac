//! Outgoing calls of compiled code: TCP, TLS and HTTP/1.1.
//!
//! A goroutine that waits for another server parks; a thread that is no server's blocks. Each wait is that of a channel
//! (`../wait.rs`), so contexts, deadlines and the places where nothing may wait are the same for all of them.
//!
//! Reading order: [`driver`] (who says that a socket is ready), [`stream`] (a connection), [`http`], [`functions`] (those of the
//! header). Tests: `tests/goroutines/test_outgoing.py`.

mod blocking;
mod driver;
pub mod error;
pub mod functions;
mod http;
mod pool;
mod response;
mod stream;
#[cfg(test)]
mod tests;
mod tls;
mod url;
