//! Session tickets that every worker of a machine understands (RFC 8446 §4.6.1, RFC 5077).
//!
//! The supervisor makes one [`Tickets`], a secret and the time it is of, and its workers inherit it. The secret moves
//! on every [`SPAN_S`] seconds by a hash that cannot be undone, in every process at the same time and without a word between
//! them. A worker keeps this span's keys and the last one's, so a ticket is good for one to two spans; an attacker
//! who steals the memory learns nothing of earlier ones.
//!
//! Keys also depend on the rules for client certificates: a ticket that was given under other rules cannot be decrypted. A ticket
//! also says until when what the client has shown is good ([`GoodUntil`]). So no session resumes whose certificate would be
//! refused today: the client shows one again.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::server::ProducesTickets;

/// Seconds for which one key makes tickets. Origin: rustls' own ticketer, 6 hours.
const SPAN_S: u64 = 6 * 60 * 60;
/// Bytes that tell by which key a ticket was made.
const NAME_BYTES: usize = 16;
/// Bytes of a nonce and of a tag (RFC 8439).
const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
/// Spans that are caught up with at most; a machine that slept for longer has forgotten its sessions.
const SPANS_MAX: u64 = 4 * 366;

/// A secret that keys of tickets are derived from, and the span of time it is of.
#[derive(Clone)]
pub struct Tickets {
    secret: [u8; 32],
    span: u64,
}

impl std::fmt::Debug for Tickets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tickets")
            .field("span", &self.span)
            .finish_non_exhaustive()
    }
}

impl Tickets {
    /// A new secret at `unix_s`.
    ///
    /// # Panics
    /// The system has no random numbers.
    pub fn new(unix_s: u64) -> Self {
        let mut secret = [0; 32];
        SystemRandom::new()
            .fill(&mut secret)
            .expect("the kernel gives random numbers once it has started");
        Self {
            secret,
            span: unix_s / SPAN_S,
        }
    }

    /// Forgets what belongs to spans before the last one of `unix_s`.
    pub fn advance(&mut self, unix_s: u64) {
        self.move_to((unix_s / SPAN_S).saturating_sub(1));
    }

    fn move_to(&mut self, span: u64) {
        if span.saturating_sub(self.span) > SPANS_MAX {
            self.span = span - SPANS_MAX;
        }
        while self.span < span {
            self.secret = hash(b"citius tickets: next secret", &self.secret, b"");
            self.span += 1;
        }
    }
}

/// SHA-256 of a purpose, a secret and what else it depends on; the first two have fixed lengths for each purpose.
fn hash(purpose: &[u8], secret: &[u8], more: &[u8]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in [purpose, secret, more] {
        context.update(part);
    }
    let mut value = [0; 32];
    value.copy_from_slice(context.finish().as_ref());
    value
}

thread_local! {
    /// Of the session whose step [`GoodUntil::during`] makes; outside of one, tickets are good for nothing.
    static GOOD_UNTIL_S: Cell<u64> = const { Cell::new(0) };
}

/// Until when the certificates are good that the client of one session has shown, in this handshake or in the one that its
/// ticket is of: seconds since 1970, and the end of time if it has shown none.
///
/// rustls calls the verifier and the ticketer in the middle of a handshake and does not say for which: who makes a step of
/// it lends them this.
#[derive(Debug)]
pub(crate) struct GoodUntil(u64);

impl GoodUntil {
    /// Of a new session.
    pub(crate) const fn new() -> Self {
        Self(u64::MAX)
    }

    /// Makes a step of the session's handshake.
    pub(crate) fn during<T>(&mut self, step: impl FnOnce() -> T) -> T {
        GOOD_UNTIL_S.set(self.0);
        let made = step();
        self.0 = GOOD_UNTIL_S.replace(0);
        made
    }

    /// What the client of this step's session has shown is good until then.
    pub(crate) fn set(unix_s: u64) {
        GOOD_UNTIL_S.set(unix_s);
    }
}

/// Makes and opens the tickets of one configuration.
#[derive(Debug)]
pub(crate) struct Ticketer {
    /// Of the span before this one, so that both keys can be derived.
    state: Mutex<State>,
    /// Identifies the rules for client certificates.
    rules: [u8; 32],
    /// Bytes of the longest ticket that was made: a longer one is not ours, and trying it would help a guesser.
    bytes_max: AtomicUsize,
}

#[derive(Debug)]
struct State {
    /// Of the span before the current one.
    tickets: Tickets,
    span: u64,
    current: Key,
    last: Key,
}

struct Key {
    name: [u8; NAME_BYTES],
    key: LessSafeKey,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

impl Key {
    fn of(tickets: &Tickets, rules: &[u8]) -> Self {
        let key = hash(b"citius tickets: key", &tickets.secret, rules);
        let mut name = [0; NAME_BYTES];
        let hashed = hash(b"citius tickets: name", &tickets.secret, rules);
        name.copy_from_slice(&hashed[..NAME_BYTES]);
        let key = UnboundKey::new(&CHACHA20_POLY1305, &key).expect("it has the key's length");
        Self {
            name,
            key: LessSafeKey::new(key),
        }
    }
}

impl State {
    fn at(mut tickets: Tickets, span: u64, rules: &[u8]) -> Self {
        tickets.move_to(span.saturating_sub(1));
        let last = Key::of(&tickets, rules);
        let mut now = tickets.clone();
        now.move_to(span);
        Self {
            span,
            current: Key::of(&now, rules),
            last,
            tickets,
        }
    }
}

impl Ticketer {
    /// Tickets under the rules that `rules` identifies.
    pub(crate) fn new(tickets: &Tickets, rules: [u8; 32], unix_s: u64) -> Self {
        Self {
            state: Mutex::new(State::at(tickets.clone(), unix_s / SPAN_S, &rules)),
            rules,
            bytes_max: AtomicUsize::new(0),
        }
    }

    fn with_state<T>(&self, unix_s: u64, act: impl FnOnce(&State) -> T) -> T {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let span = unix_s / SPAN_S;
        if span > state.span {
            *state = State::at(state.tickets.clone(), span, &self.rules);
        }
        act(&state)
    }

    fn seal(&self, plain: &[u8], unix_s: u64) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_BYTES];
        SystemRandom::new().fill(&mut nonce).ok()?;
        self.with_state(unix_s, |state| {
            let Key { name, key } = &state.current;
            let mut ticket = Vec::with_capacity(NAME_BYTES + NONCE_BYTES + plain.len() + TAG_BYTES);
            ticket.extend_from_slice(name);
            ticket.extend_from_slice(&nonce);
            ticket.extend_from_slice(plain);
            let nonce = Nonce::assume_unique_for_key(nonce);
            let body = &mut ticket[NAME_BYTES + NONCE_BYTES..];
            let tag = key
                .seal_in_place_separate_tag(nonce, Aad::from(name), body)
                .ok()?;
            ticket.extend_from_slice(tag.as_ref());
            self.bytes_max.fetch_max(ticket.len(), Ordering::Relaxed);
            Some(ticket)
        })
    }

    fn open(&self, ticket: &[u8], unix_s: u64) -> Option<Vec<u8>> {
        // Other workers' tickets are as long as ours, but we may have made none yet.
        let longest = self.bytes_max.load(Ordering::Relaxed).max(TICKET_BYTES_MAX);
        if ticket.len() > longest {
            return None;
        }
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_BYTES>()?;
        self.with_state(unix_s, |state| {
            let key = [&state.current, &state.last]
                .into_iter()
                .find(|key| key.name == *name)?;
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let plain = key
                .key
                .open_in_place(nonce, Aad::from(name), &mut sealed)
                .ok()?
                .len();
            sealed.truncate(plain);
            Some(sealed)
        })
    }
}

/// Bytes up to which a ticket is opened although this worker has made none as long: it may carry the chain of a
/// client's certificates.
const TICKET_BYTES_MAX: usize = 16 * 1024;

impl ProducesTickets for Ticketer {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        // What the next change of keys leaves of it is decided by the clock, not by this promise.
        u32::try_from(SPAN_S).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let until_s = GOOD_UNTIL_S.get();
        self.seal(&[&until_s.to_be_bytes(), plain].concat(), wall_s())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let now_s = wall_s();
        let opened = self.open(ticket, now_s)?;
        let (until_s, plain) = opened.split_first_chunk()?;
        let until_s = u64::from_be_bytes(*until_s);
        if now_s > until_s {
            return None;
        }
        // The session's next tickets are good for no longer.
        GoodUntil::set(until_s);
        Some(plain.to_vec())
    }
}

/// The wall clock, as rustls reads it.
pub(crate) fn wall_s() -> u64 {
    rustls::pki_types::UnixTime::now().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: u64 = 1_800_000_000 / SPAN_S * SPAN_S + 5;
    const RULES: [u8; 32] = [7; 32];

    fn ticketer(tickets: &Tickets, unix_s: u64) -> Ticketer {
        Ticketer::new(tickets, RULES, unix_s)
    }

    #[test]
    fn workers_of_one_machine_open_each_others_tickets() {
        let tickets = Tickets::new(NOON);
        let (one, other) = (ticketer(&tickets, NOON), ticketer(&tickets, NOON + 9));
        let ticket = one.seal(b"a session", NOON).unwrap();
        assert_eq!(other.open(&ticket, NOON + 10).unwrap(), b"a session");
        assert_ne!(one.seal(b"a session", NOON).unwrap(), ticket);
        let stranger = ticketer(&Tickets::new(NOON), NOON);
        assert!(stranger.open(&ticket, NOON).is_none());
    }

    #[test]
    fn a_ticket_lives_for_one_to_two_spans() {
        let tickets = Tickets::new(NOON);
        let (one, other) = (ticketer(&tickets, NOON), ticketer(&tickets, NOON));
        let ticket = one.seal(b"a session", NOON).unwrap();
        assert!(other.open(&ticket, NOON + SPAN_S).is_some());
        assert!(other.open(&ticket, NOON + 2 * SPAN_S).is_none());
        // A clock that is set back makes no old key return.
        assert!(other.open(&ticket, NOON).is_none());
        // A worker that is started late derives the same keys as those that were there.
        let late = ticketer(&tickets, NOON + 2 * SPAN_S);
        let ticket = one.seal(b"later", NOON + 2 * SPAN_S).unwrap();
        assert!(late.open(&ticket, NOON + 2 * SPAN_S).is_some());
    }

    #[test]
    fn a_supervisor_that_forgets_old_secrets_starts_workers_that_fit() {
        let mut tickets = Tickets::new(NOON);
        let early = ticketer(&tickets, NOON);
        let before = tickets.secret;
        tickets.advance(NOON + 5 * SPAN_S);
        assert_ne!(tickets.secret, before);
        let late = ticketer(&tickets, NOON + 5 * SPAN_S);
        let ticket = early.seal(b"x", NOON + 5 * SPAN_S).unwrap();
        assert!(late.open(&ticket, NOON + 5 * SPAN_S).is_some());
    }

    #[test]
    fn other_rules_open_nothing() {
        let tickets = Tickets::new(NOON);
        let ticket = ticketer(&tickets, NOON).seal(b"x", NOON).unwrap();
        let other = Ticketer::new(&tickets, [8; 32], NOON);
        assert!(other.open(&ticket, NOON).is_none());
    }

    #[test]
    fn a_ticket_is_good_for_as_long_as_what_the_client_has_shown() {
        let now_s = wall_s();
        let one = Ticketer::new(&Tickets::new(now_s), RULES, now_s);
        let (mut first, mut later, mut last) =
            (GoodUntil::new(), GoodUntil::new(), GoodUntil::new());
        let shown = |good_until: &mut GoodUntil, until_s| {
            good_until.during(|| GoodUntil::set(until_s));
            good_until.during(|| one.encrypt(b"x")).unwrap()
        };
        let ticket = shown(&mut first, now_s + 1000);
        assert_eq!(later.during(|| one.decrypt(&ticket)).unwrap(), b"x");
        // What a resumed session is given says the same, whatever sessions of others do in between.
        let over = shown(&mut last, now_s - 1);
        assert!(first.during(|| one.decrypt(&over)).is_none());
        assert_eq!((later.0, first.0), (now_s + 1000, now_s + 1000));
        let next = later.during(|| one.encrypt(b"y")).unwrap();
        let opened = one.open(&next, now_s).unwrap();
        assert_eq!(opened, [&(now_s + 1000).to_be_bytes()[..], b"y"].concat());
        // A ticket that is made outside of a session's step is refused.
        let stray = one.encrypt(b"x").unwrap();
        assert!(later.during(|| one.decrypt(&stray)).is_none());
        let without = GoodUntil::new().during(|| one.encrypt(b"x")).unwrap();
        assert!(later.during(|| one.decrypt(&without)).is_some());
    }

    #[test]
    fn what_was_tampered_with_opens_nothing() {
        let tickets = Tickets::new(NOON);
        let one = ticketer(&tickets, NOON);
        let ticket = one.seal(b"a session", NOON).unwrap();
        for at in 0..ticket.len() {
            let mut other = ticket.clone();
            other[at] ^= 1;
            assert!(one.open(&other, NOON).is_none(), "byte {at}");
            assert!(one.open(&ticket[..at], NOON).is_none(), "cut at {at}");
        }
        assert!(one.open(&vec![0; TICKET_BYTES_MAX + 1], NOON).is_none());
    }
}
