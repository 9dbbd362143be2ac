use std::sync::Arc;

use super::{Exchange, Judge, Phase};
use crate::flight::{Comparison, Flight, Sent};
use crate::request::{Entry, Expectation, Mix, Request};
use crate::tally::ErrorClass;
use crate::wire::Answers;

const CHECK_EVERY: u64 = 4;

/// A judge that counts, one connection, and the answer "Welcome" expected.
struct Court {
    judge: Judge,
    flight: Flight,
    n_answers: u64,
}

impl Court {
    fn new(method: &str) -> Self {
        Self::of(method, false)
    }

    fn of(method: &str, is_background: bool) -> Self {
        let entry = Entry {
            request: Request {
                method: method.into(),
                target: "/".into(),
                authority: "a".into(),
                headers: Vec::new(),
                body: Vec::new(),
                is_chunked: false,
            },
            expectation: Expectation::new(200, None, Some(b"Welcome".to_vec())).expect("valid"),
            weight: 1,
            is_background,
        };
        let mix = Arc::new(Mix::new(vec![entry]).expect("an entry"));
        let mut judge = Judge::new(mix, true, CHECK_EVERY);
        judge.begin_counting(1_000);
        Self {
            judge,
            flight: Flight::new(1),
            n_answers: 0,
        }
    }

    /// One request, due at 2 000 and sent at 3 000, and its answer at 7 000 in the given pieces.
    fn answer(&mut self, status: u16, closing: bool, pieces: &[&str]) {
        self.answer_to(true, status, closing, pieces);
    }

    fn answer_to(&mut self, counted: bool, status: u16, closing: bool, pieces: &[&str]) {
        let ticket = self.flight.insert(Sent {
            due_ns: 2_000,
            sent_ns: 3_000,
            entry: 0,
            counted,
            status: 0,
            comparison: Comparison::Off,
            n_body: 0,
        });
        self.judge.n_under_way += 1;
        self.judge.tick(7_000);
        let Self {
            judge,
            flight,
            n_answers,
        } = self;
        let mut exchange = Exchange {
            judge,
            flight,
            n_answers,
        };
        exchange.begin(ticket, status, closing);
        for piece in pieces {
            exchange.body(ticket, piece.as_bytes());
        }
        exchange.complete(ticket);
    }

    fn books(&self) -> (u64, u64) {
        (self.judge.tally.completed, self.judge.tally.errors.total())
    }
}

#[test]
fn a_valid_answer_completes_with_both_latencies() {
    let mut court = Court::new("GET");
    court.answer(200, false, &["Wel", "", "come"]);
    assert_eq!(court.books(), (1, 0));
    assert_eq!(court.judge.n_under_way, 0);
    let latency = court.judge.tally.latency.max_us().expect("one");
    let service = court.judge.tally.service.max_us().expect("one");
    assert!(
        (latency - 5.0).abs() < 0.01 && (service - 4.0).abs() < 0.01,
        "{latency} {service}"
    );
}

#[track_caller]
fn check_error(status: u16, pieces: &[&str], class: ErrorClass) {
    let mut court = Court::new("GET");
    court.answer(status, false, pieces);
    assert_eq!(court.books(), (0, 1));
    assert_eq!(court.judge.tally.errors.of(class), 1);
    assert_eq!(
        court.judge.tally.latency.max_us(),
        None,
        "an error has no latency"
    );
    assert_eq!(court.judge.tally.statuses[usize::from(status)], 1);
}

#[test]
fn an_invalid_answer_is_one_error_of_the_first_class_that_fits() {
    check_error(404, &["no"], ErrorClass::Status);
    check_error(404, &["Welcome"], ErrorClass::Status);
    check_error(200, &["Welcom"], ErrorClass::Length);
    check_error(200, &["Welcome", "!"], ErrorClass::Length);
    check_error(200, &["Welcomf"], ErrorClass::Content);
    check_error(200, &["W", "elcoMe"], ErrorClass::Content);
}

#[test]
fn bodies_are_compared_at_the_edges_and_one_in_so_many_between() {
    let mut court = Court::new("GET");
    let wrong = ["WELCOME"];
    let found: Vec<u64> = (0..10)
        .map(|_| {
            court.answer(200, false, &wrong);
            court.judge.tally.errors.total()
        })
        .collect();
    // The first answer of the connection, then every fourth of the thread.
    assert_eq!(found, [1, 1, 1, 2, 2, 2, 2, 3, 3, 3]);
    court.answer(200, true, &wrong);
    assert_eq!(
        court.judge.tally.errors.total(),
        4,
        "the last answer of a connection"
    );
    court.judge.compares_all = true;
    court.answer(200, false, &wrong);
    assert_eq!(court.judge.tally.errors.total(), 5);
    assert_eq!(court.judge.tally.bodies_compared, 5);
}

#[test]
fn answers_to_head_have_no_body_to_check() {
    let mut court = Court::new("HEAD");
    court.answer(200, true, &[]);
    assert_eq!(court.books(), (1, 0));
}

#[test]
fn the_warm_up_is_not_counted() {
    let mut court = Court::new("GET");
    court.judge.phase = Phase::WarmUp;
    court.answer(200, false, &["Welcome"]);
    court.answer(500, false, &[]);
    assert_eq!(court.books(), (0, 0));
    assert_eq!(court.judge.tally.statuses[200], 0);
}

#[test]
fn requests_of_the_warm_up_are_not_counted_when_answered_later() {
    let mut court = Court::new("GET");
    court.answer_to(false, 200, false, &["Welcome"]);
    court.answer_to(false, 500, false, &[]);
    assert_eq!(court.books(), (0, 0));
}

#[test]
fn the_drain_counts_errors_and_sets_valid_answers_aside() {
    let mut court = Court::new("GET");
    court.judge.end_counting();
    court.answer(200, false, &["Welcome"]);
    court.answer(200, false, &["Welcomf"]);
    assert_eq!(court.books(), (0, 1));
    assert_eq!(court.judge.tally.drained, 1);
    assert_eq!(court.judge.tally.latency.max_us(), None);
}

#[test]
fn intervals_follow_the_clock() {
    let mut court = Court::new("GET");
    court.answer(200, false, &["Welcome"]);
    court.judge.tick(1_000 + 250_000_000);
    court.judge.fail_unasked(ErrorClass::Connect);
    court.judge.tally.series.close();
    let (_, steps) = court.judge.tally.series.within(300_000_000);
    let series: Vec<_> = steps
        .iter()
        .map(|step| (step.completed, step.errors))
        .collect();
    assert_eq!(series, [(1, 0), (0, 0), (0, 1)]);
}

#[test]
fn a_request_in_the_background_is_judged_and_has_no_latency() {
    let mut court = Court::of("GET", true);
    court.answer(200, false, &["Welcome"]);
    court.answer(500, false, &["Welcome"]);
    assert_eq!(court.books(), (0, 1));
    assert_eq!(court.judge.tally.background, 1);
    assert_eq!(court.judge.tally.latency.summary().count, 0);
}
