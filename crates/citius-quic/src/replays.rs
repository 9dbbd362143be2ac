//! Retry tokens that have been used: the second connection that shows one is ignored.
//!
//! A token names the address of its client and the connection id that the client chose first, and lasts for seconds. What
//! is remembered is a hash of both, in a ring: a flood that overwrites it must come from addresses that have proven themselves.

use std::collections::HashSet;
use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::SocketAddr;

use quinn_proto::ConnectionId;

/// Tokens that are remembered. Origin: those of 15 s at 1 000 handshakes a second, which a core does not reach.
const REMEMBERED_MAX: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Replays {
    hasher: RandomState,
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Replays {
    /// Takes note of a token's use; whether it was used before.
    pub(crate) fn note(&mut self, client: SocketAddr, chosen: ConnectionId) -> bool {
        let hash = self.hasher.hash_one((client, chosen));
        if !self.known.insert(hash) {
            return true;
        }
        self.order.push_back(hash);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        false
    }
}
