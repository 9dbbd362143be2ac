//! Campaigns against a session of PostgreSQL: calls of all kinds, in any order, with a server that refuses some and loses names,
//! and what both say cut anywhere.
//!
//! - Nothing panics, and the server gets nothing that it cannot take at that place ([`Server`] breaks off).
//! - Each call ends once, also if the session ends.
//! - A call has its own rows, and those of its own statement, which was executed once.
//! - A call of a session is never repeated by another one.
//!
//! The bytes of an input are decisions: what is called, what the server does, how much of what it says has come.

use std::sync::Arc;

use citius_pg::{Call, Portal, Scope, Unsent};

use crate::pg_calls::{Client, FakeCall, FakeHost, FakePool};
use crate::pg_server::{PORTAL_ROWS, Server};
use crate::rng::Rng;

/// Has a client and a server do what `input` decides.
///
/// # Panics
/// If one of the invariants does not hold; the message says which.
pub fn check(input: &[u8], seed: u64) {
    play(input, seed, false);
    play(input, seed, true);
}

/// How many calls have ended well, have failed, and were repeated.
type Counts = [usize; 3];

fn play(input: &[u8], seed: u64, is_cut: bool) -> Counts {
    let mut play = Play::new(seed, is_cut);
    let mut decisions = input.iter().copied();
    while play.client.over.is_none()
        && let Some(decision) = decisions.next()
    {
        let detail = decisions.next().unwrap_or(0);
        play.decide(decision, detail);
        play.account();
    }
    play.end()
}

/// Decisions.
pub fn compose(rng: &mut Rng) -> Vec<u8> {
    let count = rng.below(120);
    let byte = |_| u8::try_from(rng.below(256)).unwrap_or(0);
    (0..count).map(byte).collect()
}

struct Play {
    client: Client,
    server: Server,
    calls: Vec<Tracked>,
    /// What the client hears comes byte by byte.
    is_cut: bool,
    /// The server has said something that no server says.
    is_garbled: bool,
    portal: Option<Arc<Portal<(), ()>>>,
    counts: Counts,
}

struct Tracked {
    call: FakeCall,
    text: String,
    /// What it is known by: its argument.
    number: i32,
    /// The rows that it is to have, if it is not a portion.
    rows: Option<Vec<i32>>,
    n_ends: usize,
}

const TEXTS: [&str; 5] = [
    "SELECT $1::int4 AS one",
    "SELECT $1::int4 AS two",
    "SELECT $1::int4 AS three",
    "UPDATE t SET a = $1",
    "SELECT $1::int4 AS four",
];

const OF_SESSIONS: [&str; 4] = [
    "DISCARD ALL",
    "SET search_path = a",
    "LISTEN a",
    "DEALLOCATE a",
];

const ERRORS: [(&str, &str); 8] = [
    ("22012", "division by zero"),
    ("57014", "canceling statement due to user request"),
    ("0A000", "cached plan must not change result type"),
    ("42P01", "relation does not exist"),
    ("22P02", "invalid input syntax"),
    ("XX000", "cache lookup failed for type 20000"),
    ("42501", "permission denied"),
    ("08P01", "bind message supplies 1 parameters"),
];

impl Play {
    fn new(seed: u64, is_cut: bool) -> Self {
        Self {
            client: Client::open(FakePool::new(
                !seed.is_multiple_of(5),
                seed.is_multiple_of(7),
            )),
            server: Server::default(),
            calls: Vec::new(),
            is_cut,
            is_garbled: false,
            portal: None,
            counts: [0; 3],
        }
    }

    fn decide(&mut self, decision: u8, detail: u8) {
        let pick = usize::from(detail);
        match decision % 18 {
            0..3 => self.add_free(pick),
            3 => self.add_own(pick),
            4 => self.add_portion(pick),
            5 => self.server.next_error = Some(ERRORS[pick % ERRORS.len()]),
            6 if detail < 64 => self.server.lose_names(),
            7 => {
                if let Some(tracked) = self.calls.iter().rev().nth(pick % 4) {
                    tracked.call.abandon();
                }
            }
            8 => {
                self.client.is_cancelling = pick.is_multiple_of(2);
                self.client.is_held = pick.is_multiple_of(4);
                self.client.pump();
            }
            9 => self.rest(pick),
            10 if detail == 99 => {
                self.is_garbled = true;
                self.server.output.extend([b'Z', 0, 0, 0, 5, b'I', detail]);
            }
            11..15 => self.serve(pick % 12),
            _ => self.deliver(pick * 4),
        }
    }

    fn add(&mut self, call: FakeCall, text: &str, number: i32, rows: Option<Vec<i32>>) {
        self.client.add(&call);
        self.calls.push(Tracked {
            call,
            text: text.to_owned(),
            number,
            rows,
            n_ends: 0,
        });
    }

    fn number(&self) -> i32 {
        i32::try_from(self.calls.len()).expect("a few calls") + 1
    }

    fn add_free(&mut self, pick: usize) {
        let (text, number) = (TEXTS[pick % TEXTS.len()], self.number());
        match pick / TEXTS.len() % 6 {
            0 => {
                let call = FakeCall::each(text, &[number, number]);
                self.add(call, text, number, Some(vec![number, number]));
            }
            1 => {
                let call = FakeCall::encoded(text, number);
                self.add(call, text, number, Some(vec![number]));
            }
            2 if pick.is_multiple_of(4) => {
                let text = "DO 'BEGIN END'";
                self.add(FakeCall::free(text, &[]), text, 0, Some(vec![]));
            }
            _ => {
                let call = FakeCall::free(text, &[number.into()]);
                self.add(call, text, number, Some(vec![number]));
            }
        }
    }

    fn add_own(&mut self, pick: usize) {
        let number = self.number();
        match pick % 8 {
            0 => self.add(FakeCall::script("BEGIN"), "BEGIN", 0, Some(vec![])),
            1 => self.add(FakeCall::script("COMMIT"), "COMMIT", 0, Some(vec![])),
            2 => self.add(FakeCall::script("ROLLBACK"), "ROLLBACK", 0, Some(vec![])),
            3 => {
                let text = ["COPY t TO STDOUT", "COPY t FROM STDIN"][pick / 8 % 2];
                self.add(FakeCall::copy(text), text, 0, Some(vec![]));
            }
            4 => {
                let text = OF_SESSIONS[pick / 8 % OF_SESSIONS.len()];
                let call = FakeCall::scoped(Scope::Session, text, &[]);
                self.add(call, text, 0, Some(vec![]));
            }
            _ => {
                let text = TEXTS[pick / 8 % TEXTS.len()];
                let call = FakeCall::scoped(Scope::Session, text, &[number.into()]);
                self.add(call, text, number, Some(vec![number]));
            }
        }
    }

    fn add_portion(&mut self, pick: usize) {
        match self.portal.take() {
            Some(portal) if pick.is_multiple_of(4) => {
                self.client.session.close_portal(portal.name().to_owned());
            }
            Some(portal) => {
                self.add(FakeCall::resume(&portal), "", 0, None);
                self.portal = Some(portal);
            }
            None => {
                let (text, number) = (TEXTS[pick % 3], self.number());
                let portal = Arc::new(Portal::new(2));
                let call = FakeCall::open(&portal, text, &[number.into()]);
                self.add(call, text, number, None);
                self.portal = Some(portal);
            }
        }
    }

    /// What is done between two users of a session, or beside them.
    fn rest(&mut self, pick: usize) {
        let is_idle = self.calls.iter().all(|tracked| tracked.n_ends > 0);
        match pick % 4 {
            0 if is_idle => {
                if let Some(reset) = self.client.session.take_changes() {
                    self.add(FakeCall::script(&reset), "", 0, Some(vec![]));
                }
            }
            0 | 1 => self.client.session.forget_statements(),
            2 => self.client.pool.wait_ms(600),
            _ => self.client.session.set_changed(),
        }
    }

    fn serve(&mut self, steps: usize) {
        if self.is_garbled {
            return; // what a client sends that has been told nonsense says nothing of it
        }
        self.server.hear(&self.client.take_output());
        let mut left = 0..steps;
        while left.next().is_some() && self.server.step() {}
    }

    fn deliver(&mut self, bytes: usize) {
        let count = bytes.min(self.server.output.len());
        let bytes: Vec<u8> = self.server.output.drain(..count).collect();
        if self.is_cut {
            bytes.chunks(1).for_each(|byte| self.client.hear(byte));
        } else {
            self.client.hear(&bytes);
        }
        for wanted in std::mem::take(&mut self.client.copied) {
            if wanted.is_none() {
                self.client.session.copy_data(b"1\n");
                self.client.session.end_copy(None);
            }
        }
    }

    /// Notes the calls that have ended, and does those again that are to be.
    fn account(&mut self) {
        for (call, result) in std::mem::take(&mut self.client.ended) {
            let tracked = self.tracked(&call);
            tracked.n_ends += 1;
            assert_eq!(tracked.n_ends, 1, "{} has ended twice", tracked.text);
            self.counts[usize::from(result.is_err())] += 1;
            let Ok(outcome) = result else { continue };
            if call.is_over() || self.is_garbled {
                continue;
            }
            let tracked = self.tracked(&call);
            let (text, number, expected) =
                (tracked.text.clone(), tracked.number, tracked.rows.clone());
            match expected {
                Some(rows) => assert_eq!(outcome.rows, rows, "{text}"),
                None => assert!(outcome.rows.len() <= 2.min(PORTAL_ROWS as usize), "{text}"),
            }
            if number > 0 {
                self.check_executed(&text, number, outcome.rows.len());
            }
        }
        for call in std::mem::take(&mut self.client.repeated) {
            assert!(call.standing().is_free(), "it belongs to its session");
            self.counts[2] += 1;
            self.client.add(&call);
        }
    }

    /// A call has ended well: so many executions of its text, and of no other, have had its argument.
    fn check_executed(&self, text: &str, number: i32, n_rows: usize) {
        let executed = self.server.executed.iter();
        let its: Vec<_> = executed.filter(|(value, _)| *value == number).collect();
        assert!(
            its.iter().all(|(_, executed)| executed == text),
            "{its:?} for {text}"
        );
        let is_one_portion = self
            .calls
            .iter()
            .any(|it| it.number == number && it.rows.is_none());
        assert!(is_one_portion || its.len() == n_rows, "{text}: {its:?}");
    }

    fn tracked(&mut self, call: &FakeCall) -> &mut Tracked {
        let found = self.calls.iter_mut().find(|it| it.call.is(call));
        found.expect("it was called")
    }

    /// Has all calls end, with the session or before.
    fn end(mut self) -> Counts {
        (self.client.is_cancelling, self.client.is_held) = (false, false);
        self.server.next_error = None;
        self.client.pump();
        for _ in 0..1000 {
            self.account();
            self.serve(usize::from(u16::MAX));
            let is_silent = self.server.output.is_empty();
            // A pool cancels what the server does for a call that no code waits for.
            let is_cancelled =
                is_silent && self.client.session.is_blocked() && self.server.cancel();
            if self.client.over.is_some() || is_silent && !is_cancelled {
                break;
            }
            self.deliver(usize::MAX);
        }
        // One that is done again ends at once if no code waits for it any more.
        self.account();
        let is_over = self.client.over.is_some();
        let lost = self.client.session.close(FakeHost(&self.client.pool));
        let lost = lost.expect("it ends once");
        let unsent = lost.unsent.iter().map(|(call, what)| {
            assert!(*what != Unsent::Queued || call.standing().is_free());
            call
        });
        let mut ends: Vec<FakeCall> = unsent.chain(&lost.underway).cloned().collect();
        ends.extend(lost.failing.iter().map(|(call, _)| call.clone()));
        let waiting = ends
            .iter()
            .map(|call| self.tracked(call).text.clone())
            .collect::<Vec<_>>();
        assert!(
            is_over || self.is_garbled || ends.is_empty(),
            "they wait for ever: {waiting:?}"
        );
        for call in &ends {
            self.tracked(call).n_ends += 1;
        }
        for tracked in &self.calls {
            assert_eq!(tracked.n_ends, 1, "{} has ended so often", tracked.text);
        }
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_campaign() {
        for seed in 0..2000 {
            check(&compose(&mut Rng::new(seed)), seed);
        }
    }

    #[test]
    fn calls_end_in_all_ways() {
        let mut sums = [0; 3];
        for seed in 0..500 {
            let counts = play(&compose(&mut Rng::new(seed)), seed, false);
            sums = std::array::from_fn(|at| sums[at] + counts[at]);
        }
        let [good, bad, repeated] = sums;
        assert!(good > 3000 && bad > 500 && repeated > 50, "{sums:?}");
    }
}
