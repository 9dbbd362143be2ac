//! The judge: says what an answer is worth and keeps the books.
//!
//! Status and body length are checked on every answer, the body byte by byte on a sample: the
//! first and the last answer of every connection and one in `check_every`. The last one is known
//! only when the peer announces it, when a count runs out, or in the drain after the window, so
//! in those cases every body is compared. Answers to HEAD have no body to check.
//!
//! Invariant: a request enters the books once, as completed or as one error, or not at all if it
//! was not sent within the window; only a valid answer is completed and only a valid answer has a
//! latency.

use std::sync::Arc;

use crate::flight::{Comparison, Flight, Sent};
use crate::request::Mix;
use crate::tally::{ErrorClass, Tally};
use crate::wire::{Answers, Failure, Ticket};

/// Which part of the run it is; see `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    WarmUp,
    Counting,
    Draining,
}

/// The judge of one thread.
#[derive(Debug)]
pub(crate) struct Judge {
    pub(crate) phase: Phase,
    pub(crate) tally: Tally,
    /// The instant of the event that is being handled.
    pub(crate) now_ns: u64,
    /// Requests under way on all connections of the thread.
    pub(crate) n_under_way: usize,
    /// From here on every body is compared: any answer may be the last of its connection.
    pub(crate) compares_all: bool,
    mix: Arc<Mix>,
    /// Whether the pace has instants of its own, so that latency and service time differ.
    is_open_pace: bool,
    check_every: u64,
    n_unchecked: u64,
}

impl Judge {
    pub(crate) fn new(mix: Arc<Mix>, is_open_pace: bool, check_every: u64) -> Self {
        Self {
            phase: Phase::WarmUp,
            tally: Tally::new(),
            now_ns: 0,
            n_under_way: 0,
            compares_all: false,
            mix,
            is_open_pace,
            check_every,
            n_unchecked: 0,
        }
    }

    pub(crate) fn begin_counting(&mut self, begin_ns: u64) {
        self.phase = Phase::Counting;
        self.tally.series.begin(begin_ns);
    }

    pub(crate) fn end_counting(&mut self) {
        self.phase = Phase::Draining;
        self.compares_all = true;
        self.tally.series.end();
    }

    #[inline]
    pub(crate) fn tick(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.tally.series.tick(now_ns);
    }

    #[inline]
    pub(crate) fn is_counting(&self) -> bool {
        self.phase == Phase::Counting
    }

    /// Notes that `sent` ended without a valid answer.
    pub(crate) fn fail(&mut self, sent: &Sent, class: ErrorClass) {
        if sent.counted && self.phase != Phase::WarmUp {
            self.tally.count_error(class);
        }
    }

    /// Notes an error that no request can be blamed for.
    pub(crate) fn fail_unasked(&mut self, class: ErrorClass) {
        if self.is_counting() {
            self.tally.count_error(class);
        }
    }

    /// Notes the complete answer to `sent`.
    #[inline]
    fn settle(&mut self, sent: &Sent) {
        let entry = &self.mix.entries[sent.entry as usize];
        let expectation = &entry.expectation;
        let is_head = entry.request.method == "HEAD";
        let is_length_wrong = expectation
            .length
            .is_some_and(|length| length != sent.n_body);
        let class = if sent.status != expectation.status {
            ErrorClass::Status
        } else if is_length_wrong && !is_head {
            ErrorClass::Length
        } else if sent.comparison == Comparison::Different {
            ErrorClass::Content
        } else {
            return self.settle_valid(sent);
        };
        self.note_status(sent);
        self.fail(sent, class);
    }

    #[inline]
    fn settle_valid(&mut self, sent: &Sent) {
        if !sent.counted || self.phase == Phase::WarmUp {
            return;
        }
        if self.phase == Phase::Draining {
            self.tally.drained += 1;
            return;
        }
        self.note_status(sent);
        if self.mix.entries[sent.entry as usize].is_background {
            self.tally.background += 1;
            return;
        }
        // The clock is monotonic, and every event is handled after the instants it refers to.
        self.tally.count_completed(self.now_ns - sent.due_ns);
        if self.is_open_pace {
            self.tally.service.record(self.now_ns - sent.sent_ns);
        }
    }

    /// Notes a message that came because somebody sent it to everybody.
    fn settle_delivery(&mut self, due_ns: Option<u64>, n_bytes: u64) {
        let expected = self.mix.entries[0].expectation.length;
        match (due_ns, self.phase) {
            (_, Phase::WarmUp) => {}
            (None, _) => self.tally.count_error(ErrorClass::Content),
            _ if expected.is_some_and(|length| length != n_bytes) => {
                self.tally.count_error(ErrorClass::Length);
            }
            (Some(_), Phase::Draining) => self.tally.drained += 1,
            (Some(due_ns), Phase::Counting) => {
                // Another thread may have read its clock after this one did.
                let latency_ns = self.now_ns.saturating_sub(due_ns);
                self.tally.count_completed(latency_ns);
                if self.is_open_pace {
                    self.tally.service.record(latency_ns);
                }
            }
        }
    }

    #[inline]
    fn note_status(&mut self, sent: &Sent) {
        if self.is_counting() && sent.counted {
            self.tally.statuses[usize::from(sent.status)] += 1;
        }
    }

    /// Whether the answer that begins belongs to the sample.
    #[inline]
    fn samples(&mut self, is_edge: bool) -> bool {
        self.n_unchecked += 1;
        let is_due = self.n_unchecked >= self.check_every;
        if is_due {
            self.n_unchecked = 0;
        }
        is_due || is_edge || self.compares_all
    }
}

/// What one connection's wire talks to.
pub(crate) struct Exchange<'a> {
    pub(crate) judge: &'a mut Judge,
    pub(crate) flight: &'a mut Flight,
    /// Complete answers on this connection.
    pub(crate) n_answers: &'a mut u64,
}

impl Answers for Exchange<'_> {
    #[inline]
    fn is_head(&self, ticket: Ticket) -> bool {
        self.judge.mix.entries[self.flight.of(ticket).entry as usize]
            .request
            .method
            == "HEAD"
    }

    #[inline]
    fn begin(&mut self, ticket: Ticket, status: u16, closing: bool) {
        let is_sampled = self.judge.samples(closing || *self.n_answers == 0);
        let sent = self.flight.of_mut(ticket);
        sent.status = status;
        let expectation = &self.judge.mix.entries[sent.entry as usize].expectation;
        if is_sampled && expectation.body.is_some() {
            sent.comparison = Comparison::SameSoFar;
            self.judge.tally.bodies_compared += 1;
        }
    }

    #[inline]
    fn body(&mut self, ticket: Ticket, bytes: &[u8]) {
        let sent = self.flight.of_mut(ticket);
        if sent.comparison == Comparison::SameSoFar {
            let expectation = &self.judge.mix.entries[sent.entry as usize].expectation;
            let expected = expectation.body.as_deref().unwrap_or_default();
            let at = usize::try_from(sent.n_body).unwrap_or(usize::MAX);
            if !expected
                .get(at..)
                .is_some_and(|expected| expected.starts_with(bytes))
            {
                sent.comparison = Comparison::Different;
            }
        }
        sent.n_body += bytes.len() as u64;
    }

    fn unseen(&mut self, ticket: Ticket, n_bytes: u64) {
        self.flight.of_mut(ticket).n_body += n_bytes;
    }

    #[inline]
    fn complete(&mut self, ticket: Ticket) {
        let sent = self.flight.remove(ticket);
        self.judge.n_under_way -= 1;
        *self.n_answers += 1;
        self.judge.settle(&sent);
    }

    fn deliver(&mut self, due_ns: Option<u64>, n_bytes: u64) {
        *self.n_answers += 1;
        self.judge.settle_delivery(due_ns, n_bytes);
    }

    fn release(&mut self, ticket: Ticket) {
        self.flight.remove(ticket);
        self.judge.n_under_way -= 1;
    }

    fn fail(&mut self, ticket: Ticket, failure: Failure) {
        let sent = self.flight.remove(ticket);
        self.judge.n_under_way -= 1;
        let class = match failure {
            Failure::Protocol => ErrorClass::Protocol,
            Failure::Reset if sent.status > 0 => ErrorClass::Short,
            Failure::Reset => ErrorClass::Reset,
        };
        self.judge.fail(&sent, class);
    }
}

#[cfg(test)]
mod tests;
