use clap::Parser;

use super::{Counted, Record, Result, Step, steps};
use crate::options::Options;
use crate::request::Url;
use crate::tally::{ErrorClass, Interval, Tally};

/// A result of two threads: 3 + 1 valid answers of 1, 2, 3 and 4 ms and two errors in 2 s.
pub(crate) fn sample(arguments: &[&str]) -> Result {
    let words = ["citius-load", "http://127.0.0.1:1/"]
        .iter()
        .chain(arguments);
    let options = Options::parse_from(words);
    let url = Url::parse(&options.url).expect("valid");
    let plan = options
        .plan(&url, ([127, 0, 0, 1], 1).into())
        .expect("valid");
    let tally = |latencies_ms: &[u64]| {
        let mut tally = Tally::new();
        tally.intervals.push(Interval::default());
        for latency_ms in latencies_ms {
            tally.count_completed();
            tally.statuses[200] += 1;
            tally.latency.record(latency_ms * 1_000_000);
        }
        tally.count_error(ErrorClass::Timeout);
        tally
    };
    let counted = Counted {
        begin_ns: 5_000,
        end_ns: 2_000_005_000,
        interrupted: false,
    };
    Result::new(&options, &plan, counted, &[tally(&[1, 2, 3]), tally(&[4])])
}

#[test]
fn survives_its_own_json() {
    for arguments in [&[][..], &["-r", "10"], &["--users", "4"]] {
        let record = sample(arguments).record;
        let json = serde_json::to_string(&record).expect("string keys");
        assert_eq!(
            serde_json::from_str::<Record>(&json).expect("schema 1"),
            record
        );
    }
}

#[test]
fn has_the_keys_of_schema_1() {
    let json = serde_json::to_value(sample(&[]).record).expect("string keys");
    for key in [
        "schema",
        "tool",
        "version",
        "url",
        "options",
        "interrupted",
        "elapsed_s",
        "completed",
        "sent",
        "connections_opened",
        "errors",
        "statuses",
        "requests_per_s",
        "bytes_read",
        "bytes_written",
        "latency_us",
        "service_us",
        "latency_histogram",
        "service_histogram",
        "schedule_lag_us",
        "intervals",
        "cpu_s",
        "cpu_us_per_request",
        "threads",
    ] {
        assert!(json.get(key).is_some(), "{key}");
    }
    for key in [
        "min", "mean", "stdev", "p50", "p90", "p99", "p99_9", "max", "count",
    ] {
        assert!(json["latency_us"].get(key).is_some(), "{key}");
    }
    assert_eq!(
        (&json["schema"], &json["statuses"]["200"]),
        (&1.into(), &4.into())
    );
}

#[test]
fn sums_the_threads() {
    let record = sample(&[]).record;
    assert_eq!(
        (
            record.completed,
            record.errors.timeout,
            record.errors.total()
        ),
        (4, 2, 2)
    );
    assert!((record.requests_per_s - 2.0).abs() < 1e-9);
    assert_eq!(
        record
            .threads
            .iter()
            .map(|thread| thread.completed)
            .collect::<Vec<_>>(),
        [3, 1]
    );
}

#[test]
fn closed_loop_has_equal_service_time_and_no_lag() {
    let record = sample(&[]).record;
    assert_eq!(record.latency_us, record.service_us);
    assert_eq!(record.schedule_lag_us, None);
    assert_eq!(record.latency_histogram, record.service_histogram);
}

#[test]
fn open_pace_has_a_lag_even_when_nothing_was_sent() {
    let lag = sample(&["-r", "10"])
        .record
        .schedule_lag_us
        .expect("an open pace");
    assert_eq!((lag.p50, lag.max), (None, None));
}

fn series(n_tenths: usize, span_ns: u64) -> Vec<Step> {
    steps(
        &vec![
            Interval {
                completed: 1,
                errors: 0
            };
            n_tenths
        ],
        span_ns,
    )
}

#[test]
fn short_runs_are_kept_in_tenths_and_long_ones_in_seconds() {
    let short = series(20, 2_000_000_000);
    assert_eq!(short.len(), 20);
    assert!((short[19].at_s - 1.9).abs() < 1e-9);
    let long = series(95, 9_500_000_000);
    assert_eq!(long.len(), 10);
    assert_eq!((long[0].completed, long[9].completed), (10, 5));
    assert!((long[9].at_s - 9.0).abs() < 1e-9);
}

#[test]
fn what_comes_after_the_end_joins_the_last_step() {
    let late = series(21, 2_000_000_000);
    assert_eq!((late.len(), late[19].completed), (20, 2));
    assert_eq!(series(1, 0).len(), 1);
}
