//! Real threads: no value is lost or received twice, and no thread misses its wake-up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use citius_chan::{Case, Channel, Event, Outcome, Ticket, Wake, select};
use citius_testkit::rng::Rng;

struct Parked(Thread);

impl<V> Wake<V> for Parked {
    type Home = ();
    type Here = ();

    fn wake(ticket: Arc<Ticket<V, Self>>) {
        ticket.waker().0.unpark();
    }

    fn home((): &()) {}

    fn wake_resident((): &(), _key: u64) {
        unreachable!("there are no residents here");
    }

    fn wake_here((): &(), _key: u64) {
        unreachable!("there are no residents here");
    }
}

type Chan = Arc<Channel<u64, Parked>>;

/// Waits for one of the cases; gives up after `patience`, if there is one.
fn ask(
    mut cases: Vec<Case<Chan, u64>>,
    seed: u64,
    patience: Option<Duration>,
) -> Option<Outcome<u64>> {
    let ticket = Arc::new(Ticket::new(Parked(thread::current())));
    if let Some(outcome) = select(&mut cases, seed, Some(&ticket)) {
        return Some(outcome);
    }
    while !ticket.is_done() {
        match patience {
            None => thread::park(),
            Some(patience) => {
                thread::park_timeout(patience);
                if !ticket.is_done() && ticket.claim() {
                    break;
                }
            }
        }
    }
    for case in &cases {
        if let Some(channel) = case.channel() {
            channel.forget(&ticket);
        }
    }
    ticket.take()
}

const SENDERS: u64 = 4;
const EACH: u64 = 4000;

/// Sends its share of the values, now and then without waiting at first.
fn send_all(sender: u64, channels: &[Chan]) {
    let mut rng = Rng::new(sender);
    for n in 1..=EACH {
        let value = sender * EACH + n;
        let patience = rng.once_in(50).then_some(Duration::ZERO);
        let cases = || {
            let cases = channels.iter();
            cases
                .map(|channel| Case::Send(Some(Arc::clone(channel)), Some(value)))
                .collect()
        };
        let sent =
            ask(cases(), rng.next_u64(), patience).or_else(|| ask(cases(), rng.next_u64(), None));
        assert_eq!(sent.map(|outcome| outcome.event), Some(Event::Sent));
    }
}

/// Receives until all channels are closed; puts a value back now and then.
fn receive_all(receiver: u64, channels: &[Chan], sum: &AtomicU64, count: &AtomicU64) {
    let mut rng = Rng::new(100 + receiver);
    let mut open: Vec<bool> = vec![true; channels.len()];
    while open.contains(&true) {
        let cases = channels
            .iter()
            .zip(&open)
            .map(|(channel, open)| Case::Receive(open.then(|| Arc::clone(channel))))
            .collect();
        let patience = rng.once_in(20).then_some(Duration::from_micros(50));
        let Some(outcome) = ask(cases, rng.next_u64(), patience) else {
            continue;
        };
        match outcome.event {
            // Too late to be cancelled: the next receiver gets it.
            Event::Received(value) if rng.once_in(30) => {
                channels[outcome.case].put_back(value);
            }
            Event::Received(value) => {
                sum.fetch_add(value, Ordering::Relaxed);
                count.fetch_add(1, Ordering::Relaxed);
            }
            _ => open[outcome.case] = false,
        }
    }
}

#[test]
fn nothing_is_lost_between_threads() {
    for capacity in [0, 1, 7] {
        let channels: Vec<Chan> = (0..2).map(|_| Arc::new(Channel::new(capacity))).collect();
        let (sum, count) = (AtomicU64::new(0), AtomicU64::new(0));
        let left = AtomicU64::new(SENDERS);
        thread::scope(|scope| {
            for sender in 0..SENDERS {
                let (channels, left) = (&channels, &left);
                scope.spawn(move || {
                    send_all(sender, channels);
                    if left.fetch_sub(1, Ordering::AcqRel) == 1 {
                        for channel in channels {
                            channel.close().unwrap();
                        }
                    }
                });
            }
            for receiver in 0..3 {
                let (channels, sum, count) = (&channels, &sum, &count);
                scope.spawn(move || receive_all(receiver, channels, sum, count));
            }
        });
        let total = SENDERS * EACH;
        assert_eq!(count.into_inner(), total);
        assert_eq!(sum.into_inner(), total * (total + 1) / 2);
    }
}
