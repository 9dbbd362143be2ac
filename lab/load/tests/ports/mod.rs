//! Ports for servers that go away, or that have to be told one.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Ports that this process has tried.
static N_TRIED: AtomicU16 = AtomicU16::new(0);

/// A listener at a port that stays free when the listener is dropped: it is below the ports that the system gives to connections
/// and to sockets bound to port 0, and no other call of this function returns it.
pub(crate) fn listener() -> TcpListener {
    let first = 9_000 + u16::try_from(std::process::id() % 1_000).expect("below 1000");
    let mut tried = (0..1_000).map(|_| first + N_TRIED.fetch_add(1, Ordering::Relaxed));
    tried
        .find_map(|port| TcpListener::bind(("127.0.0.1", port)).ok())
        .expect("a free port")
}
