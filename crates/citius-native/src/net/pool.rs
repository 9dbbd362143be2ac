//! Connections whose last request is answered, for the next request to the same server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use citius_goroutine::Nanos;

use super::stream::{Stream, Target};
use crate::clock::now;
use crate::lock::lock;

/// Idle connections to one server.
const PER_TARGET_MAX: usize = 32;
/// All idle connections of a reactor.
const TOTAL_MAX: usize = 256;
/// An idle connection is closed after this time: servers and firewalls forget them at about a minute.
const IDLE_NS: Nanos = 30_000_000_000;

type Kept = (Arc<Stream>, Nanos);

/// The idle connections of one reactor, or of all threads.
#[derive(Default)]
pub(crate) struct Idle(Mutex<HashMap<Target, Vec<Kept>>>);

impl Idle {
    /// The one that was used last and is alive.
    pub(crate) fn take(&self, target: &Target) -> Option<Arc<Stream>> {
        loop {
            let (stream, since) = lock(&self.0).get_mut(target)?.pop()?;
            if since.saturating_add(IDLE_NS) > now() && stream.is_quiet() {
                return Some(stream);
            }
        }
    }

    /// Keeps one for the next request.
    pub(crate) fn give(&self, target: &Target, stream: Arc<Stream>) {
        let now = now();
        let old = {
            let mut table = lock(&self.0);
            let mut old: Vec<Kept> = Vec::new();
            for kept in table.values_mut() {
                old.extend(kept.extract_if(.., |(_, since)| since.saturating_add(IDLE_NS) <= now));
            }
            table.retain(|_, kept| !kept.is_empty());
            let total: usize = table.values().map(Vec::len).sum();
            let kept = table.entry(target.clone()).or_default();
            if kept.len() < PER_TARGET_MAX && total < TOTAL_MAX {
                kept.push((stream, now));
            } else {
                old.push((stream, now));
            }
            old
        };
        // Closing them takes other locks.
        drop(old);
    }

    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *lock(&self.0));
        drop(all);
    }
}
