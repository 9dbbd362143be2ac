use clap::Parser;

use super::{Counted, Record, Result, Step};
use crate::options::Options;
use crate::request::Url;
use crate::tally::{ErrorClass, Tally};

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
        tally.series.begin(0);
        for latency_ms in latencies_ms {
            tally.count_completed(latency_ms * 1_000_000);
            tally.statuses[200] += 1;
        }
        tally.count_error(ErrorClass::Timeout);
        tally.series.close();
        tally.answers_by_connection = latencies_ms.iter().map(|ms| ms - 1).collect();
        tally.connect.record(900_000_000);
        tally.connect.record(1_010_000_000);
        tally
    };
    let counted = Counted {
        begin_ns: 5_000,
        end_ns: 2_000_005_000,
        begin_unix_ns: 1_700_000_000_000_000_000,
        network: None,
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
        "connections",
        "connect_us",
        "connect_histogram",
        "connects_over_1s",
        "connect_failures",
        "network",
        "asked_per_s",
        "sent_per_s",
        "schedule_lag_histogram",
        "begin_unix_s",
        "end_unix_s",
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

#[test]
fn the_series_has_times_and_no_zero_for_nothing() {
    let record = sample(&[]).record;
    assert!((record.interval_s - 0.1).abs() < 1e-9);
    let step = &record.intervals[0];
    assert_eq!(
        (step.completed, step.errors, step.max_us),
        (4, 2, Some(4_000.0))
    );
    assert_eq!(step.mean_us, Some(2_500.0));
    let empty = Step::new(1.0, &crate::series::Step::default());
    assert_eq!(
        (empty.mean_us, empty.p50_us, empty.max_us),
        (None, None, None)
    );
}

#[test]
fn connections_are_compared() {
    let connections = sample(&[]).record.connections;
    assert_eq!((connections.asked, connections.idle), (64, 1));
    assert_eq!(
        (
            connections.answers_min,
            connections.answers_median,
            connections.answers_max
        ),
        (0, 2, 3)
    );
}

#[test]
fn a_second_to_connect_is_told_from_less() {
    let record = sample(&[]).record;
    assert_eq!((record.connect_us.count, record.connects_over_1s), (4, 2));
}
