use clap::Parser;

use super::{Cpus, Options, Span, parse_cpus, parse_rate, parse_span};
use crate::pace::Pace;
use crate::plan::{Plan, Protocol};
use crate::request::Url;
use crate::stop::Stop;

fn plan(arguments: &str) -> Result<Plan, String> {
    let words = ["citius-load", "http://127.0.0.1:1/x"].into_iter();
    let options = Options::try_parse_from(words.chain(arguments.split_whitespace()))
        .map_err(|error| error.to_string())?;
    let url = Url::parse(&options.url)?;
    options.plan(&url, ([127, 0, 0, 1], url.port).into())
}

#[test]
fn command_line_is_well_formed() {
    use clap::CommandFactory;
    Options::command().debug_assert();
}

#[test]
fn spans_have_units() {
    for (text, span_ns) in [
        ("10", 10_000_000_000),
        ("10s", 10_000_000_000),
        ("500ms", 500_000_000),
        ("2m", 120_000_000_000),
        ("1.5s", 1_500_000_000),
        ("20us", 20_000),
        ("0", 0),
    ] {
        assert_eq!(parse_span(text), Ok(Span(span_ns)), "{text}");
    }
    for text in ["", "s", "10x", "-1", "1e3", "1.2.3", "99999999999999h"] {
        assert!(parse_span(text).is_err(), "{text}");
    }
}

#[test]
fn cpu_lists_have_ranges() {
    assert_eq!(parse_cpus("1"), Ok(Cpus(vec![1])));
    assert_eq!(parse_cpus("3,0-2"), Ok(Cpus(vec![3, 0, 1, 2])));
    for text in ["", "a", "1-", "-1", "2-1", "999999"] {
        assert!(parse_cpus(text).is_err(), "{text}");
    }
}

#[test]
fn rates_are_positive_and_finite() {
    assert_eq!(parse_rate("0.5"), Ok(0.5));
    for text in ["0", "-1", "nan", "inf", "x", "2e9"] {
        assert!(parse_rate(text).is_err(), "{text}");
    }
}

#[test]
fn defaults_are_those_of_the_help() {
    let plan = plan("").expect("valid");
    assert_eq!(plan.pace, Pace::Closed);
    assert_eq!(
        plan.stop,
        Stop {
            after_ns: Some(10_000_000_000),
            requests: None
        }
    );
    assert_eq!(
        (
            plan.transport.connections,
            plan.transport.pipeline,
            plan.threads
        ),
        (64, 1, 1)
    );
    assert!(plan.transport.keep_alive);
    assert_eq!(plan.timeout_ns, 5_000_000_000);
}

#[test]
fn paces_exclude_each_other_and_keep_their_values() {
    let pace = |arguments| plan(arguments).map(|plan| plan.pace);
    assert_eq!(pace("-r 500"), Ok(Pace::Constant { per_s: 500.0 }));
    assert_eq!(pace("-r 500 --poisson"), Ok(Pace::Poisson { per_s: 500.0 }));
    let users = Pace::Users {
        users: 6_000,
        ramp_ns: 2_000_000_000,
        loops: 1,
    };
    assert_eq!(pace("--users 6000 --ramp 2"), Ok(users));
    for arguments in [
        "--poisson",
        "--ramp 2",
        "--users 3 -r 5",
        "--users 3 -c 5",
        "--users 3 -n 5",
    ] {
        assert!(pace(arguments).is_err(), "{arguments}");
    }
}

#[test]
fn users_bring_their_own_connections_and_count() {
    let plan = plan("--users 10 --ramp 1").expect("valid");
    assert_eq!(plan.transport.connections, 10);
    assert_eq!(
        plan.stop,
        Stop {
            after_ns: None,
            requests: Some(10)
        }
    );
    assert!(!plan.transport.keep_alive);
}

#[test]
fn a_count_alone_has_no_time_limit() {
    let stop = |arguments| plan(arguments).expect("valid").stop;
    assert_eq!(
        stop("-n 5"),
        Stop {
            after_ns: None,
            requests: Some(5)
        }
    );
    assert_eq!(
        stop("-n 5 -d 2"),
        Stop {
            after_ns: Some(2_000_000_000),
            requests: Some(5)
        }
    );
}

#[test]
fn refusals_name_the_option() {
    for (arguments, part) in [
        ("-c 0", "--connections"),
        ("-t 0", "--threads"),
        ("-t 3 -c 2", "every thread needs a connection"),
        ("-p 0", "--pipeline"),
        ("-n 0", "--requests"),
        ("-d 0", "--duration"),
        ("--check-every 0", "--check-every"),
        ("--users 0", "--users"),
        ("--users 3 --warmup 1", "--warmup"),
        ("--timeout 2h", "--timeout"),
        ("-H nocolon", "Name: value"),
        ("-m GE(T", "method"),
        ("--expect-body ab --expect-length 3", "length is 3"),
        ("--expect-status 99", "expect-status"),
        ("--no-keepalive -p 2", "--pipeline"),
        ("--body a --body-file b", "--body-file"),
        ("--mix /no/such/file", "/no/such/file"),
        ("--fail-if p99", "METRIC OP VALUE"),
    ] {
        let message = plan(arguments).expect_err(arguments);
        assert!(message.contains(part), "{arguments}: {message}");
    }
}

#[test]
fn messages_of_webtransport() {
    let plan = |words: &str| {
        let words = ["citius-load", "wt://127.0.0.1:1/echo"]
            .into_iter()
            .chain(words.split_whitespace());
        let options = Options::try_parse_from(words).map_err(|error| error.to_string())?;
        let url = Url::parse(&options.url)?;
        options.plan(&url, ([127, 0, 0, 1], url.port).into())
    };
    let streams = plan("-p 8").expect("valid");
    assert_eq!(streams.protocol, Protocol::Streams);
    assert_eq!(streams.transport.pipeline, 8);
    assert!(streams.security.is_some(), "QUIC is encrypted");
    let entry = &streams.mix.entries[0];
    assert_eq!(entry.expectation.status, 200);
    assert_eq!(entry.expectation.body.as_ref(), Some(&entry.request.body));
    let datagrams = plan("--datagrams -b 12345678").expect("valid");
    assert_eq!(datagrams.protocol, Protocol::Datagrams);
    for (words, why) in [
        ("--datagrams -b 1234567", "a datagram holds the 8 bytes"),
        ("--streams 2", "are --pipeline, not --streams"),
        ("--rate 10", "in the closed loop"),
        ("--no-keepalive", "connections that live on"),
        ("--http2", "mean nothing to a wt URL"),
        ("--broadcast", "mean nothing to a wt URL"),
    ] {
        let error = plan(words).expect_err(words);
        assert!(error.contains(why), "{words}: {error}");
    }
}

#[test]
fn datagrams_are_those_of_webtransport() {
    let error = plan("--datagrams").expect_err("an http URL");
    assert!(error.contains("--datagrams needs a wt URL"), "{error}");
}
