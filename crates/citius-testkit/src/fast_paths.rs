//! The fast paths of a connection against its slow ones: the same input, the same events, the same output.
//!
//! Compared are the head cache ([`Connection::receive_cached`](citius_h1::Connection::receive_cached)), the response template, and
//! plain responses ([`Connection::respond`](citius_h1::Connection::respond)). Some connections in turn share the
//! cache, as all connections of a reactor do, across listeners: heads come back to it with fields that TLS, a trusted
//! proxy or the observer have added.

use citius_h1::Closing;
use citius_http::{Fault, Limits};

use crate::campaign::{Moody, mutate};
use crate::driver::{Application, Driver, Echo, Seen};
use crate::rng::Rng;
use crate::variants;

/// How often the fast paths were taken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hits {
    /// Heads that came out of the cache.
    pub recalled: usize,
    /// Responses that were written as plain ones.
    pub plain: usize,
}

/// What came of one connection.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    seen: Vec<Seen>,
    written: Vec<u8>,
    closing: Option<Closing>,
    fault: Option<Fault>,
}

/// Compares both over connections that depend on `seed` alone.
///
/// # Panics
/// If they differ.
pub fn check(seed: u64) -> Hits {
    let inputs = inputs_of(seed);
    let (fast, hits) = replay(&inputs, seed, true);
    let (slow, none) = replay(&inputs, seed, false);
    assert_eq!((none.recalled, none.plain), (0, 0), "slow means slow");
    for (at, (fast, slow)) in fast.iter().zip(&slow).enumerate() {
        assert_eq!(fast, slow, "seed {seed}, connection {at}");
    }
    hits
}

/// The pieces that three connections send.
fn inputs_of(seed: u64) -> Vec<Vec<Vec<u8>>> {
    let mut rng = Rng::new(seed);
    let run = variants::run(&mut rng, 24);
    let connection = |requests: &[variants::Variant]| {
        let mut bytes: Vec<u8> = requests
            .iter()
            .flat_map(variants::Variant::to_http1)
            .collect();
        if rng.once_in(4) {
            mutate(&mut rng, &mut bytes, &[]);
        }
        let size = 1 + rng.below(400);
        bytes.chunks(size).map(<[u8]>::to_vec).collect()
    };
    run.chunks(8).map(connection).collect()
}

fn replay(inputs: &[Vec<Vec<u8>>], seed: u64, is_fast: bool) -> (Vec<Outcome>, Hits) {
    let limits = Limits::default();
    let (mut outcomes, mut hits, mut caches) = (Vec::new(), Hits::default(), None);
    for (pieces, number) in inputs.iter().zip(0..) {
        let (mut echo, mut moody) = (Echo::default(), Moody::new(seed + number));
        let application: &mut dyn Application = if (seed + number).is_multiple_of(3) {
            &mut moody
        } else {
            &mut echo
        };
        let mut driver = Driver::new(&limits, application);
        driver.is_fast = is_fast;
        driver.spoils = Some(Rng::new(seed));
        driver.caches = caches.take().unwrap_or_default();
        driver.sign(Some("s"), Some(&format!("day {}", number / 2)));
        driver.offer(pieces.clone());
        while driver.resume() {}
        driver.finish();
        while driver.resume() {}
        hits.recalled += driver.n_recalled;
        hits.plain += driver.n_plain;
        caches = Some(std::mem::take(&mut driver.caches));
        outcomes.push(Outcome {
            closing: driver.connection.closing(),
            fault: driver.connection.fault(),
            seen: driver.seen,
            written: driver.written,
        });
    }
    (outcomes, hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_paths_come_to_the_same_as_slow_ones() {
        let mut hits = Hits::default();
        for seed in 0..2000 {
            let more = check(seed);
            hits.recalled += more.recalled;
            hits.plain += more.plain;
        }
        let taken = (hits.recalled > 5000, hits.plain > 5000);
        let expected = (citius_http::FAST_PATHS, citius_http::FAST_PATHS);
        assert_eq!(taken, expected, "{hits:?}");
    }
}
