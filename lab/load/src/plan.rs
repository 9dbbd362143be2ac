//! A run, decided: every option resolved, nothing left to interpret.

use std::net::SocketAddr;

use crate::clock::SECOND_NS;
use crate::pace::Pace;
use crate::request::Mix;
use crate::stop::{Quota, Stop};
use crate::tls::Security;

/// Everything the engines need. Pace, transport and stop rule are independent of each other.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) address: SocketAddr,
    /// `Some` if connections are to be secured by TLS.
    pub(crate) security: Option<Security>,
    pub(crate) protocol: Protocol,
    /// Connections that send what all receive; `None` if it is no broadcast.
    pub(crate) senders: Option<usize>,
    pub(crate) pace: Pace,
    pub(crate) transport: Transport,
    pub(crate) stop: Stop,
    pub(crate) mix: Mix,
    /// Of so many answers of a thread, one has its body compared.
    pub(crate) check_every: u64,
    pub(crate) timeout_ns: u64,
    pub(crate) warmup_ns: u64,
    /// When to send the first request, by `CLOCK_MONOTONIC`; at once if `None`.
    pub(crate) start_ns: Option<u64>,
    pub(crate) threads: usize,
    /// Thread `i` runs on CPU `cpus[i % len]`; anywhere if empty.
    pub(crate) cpus: Vec<usize>,
    pub(crate) seed: u64,
}

/// What is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    Http3,
    WebSocket,
    Rpc,
    /// Calls of MessagePack-RPC, each on a stream of QUIC.
    RpcQuic,
    /// Messages of a WebTransport session, each on a stream.
    Streams,
    /// The same, each in a datagram.
    Datagrams,
}

impl Protocol {
    /// Whether messages of WebTransport sessions are sent.
    pub(crate) fn is_webtransport(self) -> bool {
        matches!(self, Self::Streams | Self::Datagrams)
    }
}

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Transport {
    pub(crate) connections: usize,
    /// Requests under way at once on one connection: pipelined, or in streams.
    pub(crate) pipeline: u16,
    /// Whether a connection serves more than one request.
    pub(crate) keep_alive: bool,
    /// Requests of one connection, after which another takes its place; `None` for no limit.
    pub(crate) requests_per_connection: Option<u64>,
}

impl Transport {
    /// How many requests the connection in place `index` of `n_places` serves, at its first opening.
    ///
    /// The first ones end one after the other, so that not all connections are replaced at once.
    pub(crate) fn first_requests(self, index: usize, n_places: usize) -> u64 {
        let Some(limit) = self.requests_per_connection else {
            return u64::MAX;
        };
        (limit * (index as u64 + 1) / n_places as u64).max(1)
    }

    /// The connections of thread `thread` of `n_threads`.
    pub(crate) fn share(self, thread: usize, n_threads: usize) -> usize {
        self.connections / n_threads + usize::from(thread < self.connections % n_threads)
    }
}

impl Plan {
    /// The requests that thread `thread` may send. Users bring theirs along.
    pub(crate) fn quota(&self, thread: usize) -> Quota {
        match self.pace {
            Pace::Users { loops, .. } => {
                let n_users = self.transport.share(thread, self.threads) as u64;
                Quota::of(n_users.saturating_mul(loops))
            }
            _ => self.stop.quota(thread as u64, self.threads as u64),
        }
    }

    /// Connections of a thread that send.
    pub(crate) fn n_senders(&self, thread: usize) -> usize {
        let share = self.transport.share(thread, self.threads);
        match self.senders {
            Some(senders) => Transport {
                connections: senders,
                ..self.transport
            }
            .share(thread, self.threads),
            None => share,
        }
    }

    /// Requests that a user sends; 0 where there are no users.
    pub(crate) fn loops(&self) -> u64 {
        match self.pace {
            Pace::Users { loops, .. } => loops,
            _ => 0,
        }
    }

    /// How long answers under way at the end are waited for.
    pub(crate) fn drain_ns(&self) -> u64 {
        self.timeout_ns.min(DRAIN_NS_MAX)
    }
}

/// A server that is slower than this at the end of a run has its requests reported as unanswered.
const DRAIN_NS_MAX: u64 = SECOND_NS;
