use super::Condition;
use crate::record::tests::sample;

/// The sample: 4 valid answers of 1 to 4 ms and 2 errors in 2 s.
#[track_caller]
fn check(text: &str, holds: bool) {
    let condition = Condition::parse(text).expect("a valid condition");
    assert_eq!(condition.held_by(&sample(&[])).is_some(), holds, "{text}");
}

#[test]
fn compares_each_metric_in_its_unit() {
    for (text, holds) in [
        ("p50>1900us", true),
        ("p50>2.1ms", false),
        ("p99 >= 3.9ms", true),
        ("p99_9<5ms", true),
        ("p25>1.1ms", false),
        ("min<1.1ms", true),
        ("max>1s", false),
        ("mean>2.4ms", true),
        ("stdev>2ms", false),
        ("rps<2.1", true),
        ("rps<2", false),
        ("rps<=2", true),
        ("completed<4", false),
        ("completed<5", true),
        ("errors>1", true),
        ("errors>2", false),
        ("errors>33%", true),
        ("errors>34%", false),
    ] {
        check(text, holds);
    }
}

#[test]
fn figures_that_do_not_exist_fail_the_gate() {
    check("lag>1s", true);
    check("lag<1s", true);
}

#[test]
fn says_what_held_and_by_how_much() {
    let condition = Condition::parse(" errors > 0.1% ").expect("valid");
    let reason = condition.held_by(&sample(&[])).expect("it holds");
    assert_eq!(reason, "errors > 0.1%: it is 33.3333%");
}

#[test]
fn refuses_what_it_cannot_compare() {
    for text in [
        "",
        "p99",
        "p99=1ms",
        "p99>",
        "p99>20",
        "p99>x",
        "p101>1s",
        "pp>1s",
        "rps<1ms",
        "rps<1%",
        "latency>1s",
        "errors>x%",
        "errors>nan",
    ] {
        let message = Condition::parse(text).expect_err(text);
        assert!(message.contains("METRIC OP VALUE"), "{text}: {message}");
    }
}
