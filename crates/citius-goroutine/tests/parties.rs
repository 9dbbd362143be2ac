//! Random operations of goroutines of both kinds on the same channels: no value is lost, received twice or kept, no goroutine waits
//! for ever, and nothing is left of channels and those that waited.
//!
//! It is what `citius-chan/tests/model.rs` holds of the pure state, for real stacks, wake-ups and threads. A seed decides on the
//! operations; the order of threads is theirs.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use citius_chan::{Case, Event, Outcome};
use citius_goroutine::{Local, Pool, PoolSettings, Stacks, yield_now};
use citius_testkit::rng::Rng;

use common::{Chan, Failures, chan, receive, select_for, select_one, send, start};

const CHANNELS: usize = 3;
/// Of senders and of receivers on each scheduler.
const PARTIES: u64 = 3;
const EACH: u64 = 150;
const SEEDS: u64 = 60;

/// A value, of which it is known how many there are.
struct Token {
    number: u64,
    live: Arc<AtomicUsize>,
}

impl Token {
    fn new(number: u64, live: &Arc<AtomicUsize>) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        let live = Arc::clone(live);
        Self { number, live }
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What all goroutines of a campaign have.
struct Shared {
    channels: Vec<Chan<Token>>,
    live: Arc<AtomicUsize>,
    sent: Mutex<Vec<u64>>,
    received: Mutex<Vec<u64>>,
    /// Values that were to be sent when the channels were closed, and those whose sender gave up.
    refused: AtomicUsize,
    given_up: AtomicUsize,
    senders: AtomicUsize,
    parties: AtomicUsize,
}

impl Shared {
    fn close(&self) {
        for channel in &self.channels {
            // One of the senders may have closed it before.
            let _ = channel.close();
        }
    }
}

/// Sends each of its values until it is received or refused; one sender of every fourth campaign closes the channels in the middle.
fn sends(shared: &Shared, first: u64, mut rng: Rng, closes: bool) {
    let mut sent = Vec::new();
    let mut number = first;
    while number < first + EACH {
        let channel = |rng: &mut Rng| Arc::clone(&shared.channels[rng.below(CHANNELS)]);
        let token = || Token::new(number, &shared.live);
        let case = |rng: &mut Rng| Case::Send(Some(channel(rng)), Some(token()));
        let was_sent = match rng.below(8) {
            0 => {
                yield_now();
                continue;
            }
            1..4 => send(&channel(&mut rng), token()),
            kind => {
                let mut cases = vec![case(&mut rng), Case::Receive(None), case(&mut rng)];
                if rng.once_in(4) {
                    // The same channel twice.
                    let twice = cases[0].channel().cloned();
                    cases.push(Case::Send(twice, Some(token())));
                }
                let outcome = if kind < 6 {
                    Some(select_one(cases, rng.next_u64()))
                } else {
                    select_for(cases, rng.next_u64(), rng.below(3))
                };
                let Some(Outcome { event, .. }) = outcome else {
                    shared.given_up.fetch_add(1, Ordering::Relaxed);
                    continue;
                };
                matches!(event, Event::Sent)
            }
        };
        if was_sent {
            sent.push(number);
        } else {
            shared.refused.fetch_add(1, Ordering::Relaxed);
        }
        number += 1;
        if closes && number == first + EACH / 2 {
            shared.close();
        }
    }
    shared.sent.lock().expect("no panic").extend(sent);
    if shared.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
        shared.close();
    }
    shared.parties.fetch_sub(1, Ordering::AcqRel);
}

/// Receives from all channels until they are closed and empty. With `waits_for_one` it sometimes waits for a single channel. At least
/// one receiver has to wait for all channels at a time: otherwise all receivers could wait on one channel while all senders wait on
/// another, and the campaign would not end.
fn receives(shared: &Shared, mut rng: Rng, waits_for_one: bool) {
    let mut open: Vec<Option<Chan<Token>>> = shared.channels.iter().cloned().map(Some).collect();
    let mut received = Vec::new();
    while open.iter().any(Option::is_some) {
        let which = rng.below(CHANNELS);
        match (rng.below(6), &open[which]) {
            (0, _) => yield_now(),
            (1, Some(channel)) if waits_for_one => match receive(channel) {
                Some(token) => received.push(token.number),
                None => open[which] = None,
            },
            (kind, _) => {
                let cases = open.iter().cloned().map(Case::Receive).collect();
                let outcome = if kind < 4 {
                    Some(select_one(cases, rng.next_u64()))
                } else {
                    select_for(cases, rng.next_u64(), rng.below(3))
                };
                match outcome {
                    Some(Outcome {
                        event: Event::Received(token),
                        ..
                    }) => received.push(token.number),
                    Some(Outcome { case, .. }) => open[case] = None,
                    None => {}
                }
            }
        }
    }
    shared.received.lock().expect("no panic").extend(received);
    shared.parties.fetch_sub(1, Ordering::AcqRel);
}

fn schedulers(failures: &Failures) -> (Local, Pool) {
    let owner = thread::current();
    let local = Local::new(
        Stacks::new(64 * 1024, 1000),
        Box::new(failures.clone()),
        Box::new(move || owner.unpark()),
    );
    let settings = PoolSettings {
        name: "test",
        threads: 3,
        now: || 0,
        prepare_thread: || {},
    };
    let stacks = Stacks::new(64 * 1024, 1000);
    let pool = Pool::new(settings, stacks, Box::new(failures.clone()));
    (local, pool.expect("descriptors"))
}

fn start_party(shared: &Arc<Shared>, party: u64, seed: u64, rng: &mut Rng, on: (&Local, &Pool)) {
    let (from, to) = (Rng::new(rng.next_u64()), Rng::new(rng.next_u64()));
    let (sender, receiver) = (Arc::clone(shared), Arc::clone(shared));
    let closes = party == 0 && seed.is_multiple_of(4);
    let send = move || sends(&sender, party * EACH, from, closes);
    // One on each scheduler waits for all channels at a time.
    let receive = move || receives(&receiver, to, party >= 2);
    if party.is_multiple_of(2) {
        on.0.start(0, send).expect("a stack");
        on.0.start(0, receive).expect("a stack");
    } else {
        start(on.1, 0, send).expect("a stack");
        start(on.1, 0, receive).expect("a stack");
    }
}

/// Values that were refused, and given up.
fn play(seed: u64) -> (usize, usize) {
    let failures = Failures::default();
    let (local, pool) = schedulers(&failures);
    let mut rng = Rng::new(seed);
    let both = usize::try_from(2 * PARTIES).expect("a few");
    let shared = Arc::new(Shared {
        channels: (0..CHANNELS).map(|_| chan(rng.below(4))).collect(),
        live: Arc::default(),
        sent: Mutex::default(),
        received: Mutex::default(),
        refused: AtomicUsize::new(0),
        given_up: AtomicUsize::new(0),
        senders: AtomicUsize::new(both),
        parties: AtomicUsize::new(2 * both),
    });
    for party in 0..2 * PARTIES {
        start_party(&shared, party, seed, &mut rng, (&local, &pool));
    }
    while shared.parties.load(Ordering::Acquire) > 0 {
        if !local.run(&|| false) {
            thread::park_timeout(Duration::from_millis(50));
        }
    }
    while !(local.is_empty() && pool.is_empty()) {
        local.run(&|| false);
        thread::yield_now();
    }
    pool.close();
    assert!(failures.take().is_empty());
    check(Arc::into_inner(shared).expect("all goroutines have ended"))
}

fn check(shared: Shared) -> (usize, usize) {
    let mut received = shared.received.into_inner().expect("no panic");
    let mut sent = shared.sent.into_inner().expect("no panic");
    received.sort_unstable();
    sent.sort_unstable();
    assert_eq!(received, sent);
    assert_eq!(shared.live.load(Ordering::Relaxed), 0, "values are kept");
    for channel in &shared.channels {
        assert_eq!(channel.waiting(), (0, 0));
        assert_eq!(Arc::strong_count(channel), 1, "something refers to it");
    }
    let refused = shared.refused.into_inner();
    assert_eq!(
        u64::try_from(sent.len() + refused),
        Ok(2 * PARTIES * EACH),
        "each value has one fate"
    );
    (refused, shared.given_up.into_inner())
}

#[test]
fn nothing_is_lost_or_kept_among_goroutines_of_both_kinds() {
    let (mut refused, mut given_up) = (0, 0);
    for seed in 0..SEEDS {
        let played = std::panic::catch_unwind(|| play(seed));
        let (more_refused, more_given_up) = played.unwrap_or_else(|_| panic!("seed {seed}"));
        refused += more_refused;
        given_up += more_given_up;
    }
    // A campaign in which nothing of this happens proves nothing.
    assert!(refused > 100, "{refused} were refused");
    assert!(given_up > 100, "{given_up} senders have given up");
}
