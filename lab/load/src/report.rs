//! A record for people: the live line and the table.

use std::fmt::Write as _;

use crate::histogram::Summary;
use crate::record::{Handshakes, Record};

/// What the display knows while the run goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub(crate) elapsed_s: f64,
    /// `None` when only a count ends the run and nothing has been completed yet.
    pub(crate) remaining_s: Option<f64>,
    pub(crate) requests: u64,
    pub(crate) requests_per_s: f64,
    pub(crate) errors: u64,
}

/// The live line, without an end of line.
pub(crate) fn live_line(progress: &Progress) -> String {
    let remaining = progress
        .remaining_s
        .map(|left_s| format!(", {left_s:.0} s to go"));
    format!(
        "{:.0} s{}: {} requests, {}/s, {} errors",
        progress.elapsed_s,
        remaining.unwrap_or_default(),
        grouped(progress.requests),
        rate(progress.requests_per_s),
        grouped(progress.errors),
    )
}

/// The table, with its last end of line.
pub(crate) fn table(record: &Record) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        writeln!(text, "{name:>12}  {value}").expect("writing to a String does not fail");
    };
    let mark = if record.interrupted {
        ", interrupted"
    } else {
        ""
    };
    line("target", &format!("{}{mark}", record.url));
    line("load", &load(record));
    line(
        "completed",
        &format!(
            "{} in {:.2} s: {} requests/s",
            grouped(record.completed),
            record.elapsed_s,
            rate(record.requests_per_s)
        ),
    );
    line("errors", &errors(record));
    let is_open = record.schedule_lag_us.is_some();
    line("latency", &summary(&record.latency_us));
    if is_open {
        line("service", &summary(&record.service_us));
    }
    if let Some(lag) = &record.schedule_lag_us {
        let lag = [("p50", lag.p50), ("p99", lag.p99), ("max", lag.max)];
        line("lag", &named_times(&lag));
    }
    line("connections", &connections(record));
    if let Some(tls) = &record.tls {
        line("TLS", &handshakes(tls));
    }
    if let Some(trouble) = trouble(record) {
        line("connecting", &trouble);
    }
    line(
        "bytes",
        &format!(
            "{} read, {} written",
            grouped(record.bytes_read),
            grouped(record.bytes_written)
        ),
    );
    let per_request = record
        .cpu_us_per_request
        .map(|cpu_us| format!(", {cpu_us:.2} µs per request"));
    line(
        "own CPU",
        &format!(
            "{:.2} s user, {:.2} s system{}",
            record.cpu_s.user,
            record.cpu_s.system,
            per_request.unwrap_or_default()
        ),
    );
    text
}

fn load(record: &Record) -> String {
    let option = |name: &str| &record.options[name];
    let n_connections = option("connections").as_u64().unwrap_or_default();
    let threads = option("threads").as_u64().unwrap_or_default();
    let pace = match option("pace").as_str().unwrap_or_default() {
        "closed" => "closed loop".to_owned(),
        "users" => {
            let ramp_s = option("ramp_s").as_f64().unwrap_or_default();
            return format!(
                "{} users over {ramp_s} s, {} requests each, {threads} threads",
                grouped(n_connections),
                option("loops")
            );
        }
        pace => format!(
            "{pace} rate of {}/s",
            rate(option("rate").as_f64().unwrap_or_default())
        ),
    };
    let depth = option("pipeline").as_u64().unwrap_or_default();
    let has_streams = option("protocol") == "h2" || option("protocol") == "h3";
    let pipelined = if let Some(senders) = option("senders").as_u64() {
        format!(", {senders} of them send to all")
    } else if has_streams {
        format!(" × {depth} streams")
    } else if depth > 1 {
        format!(", {depth} requests deep")
    } else {
        String::new()
    };
    let is_kept = option("keepalive").as_bool().unwrap_or_default();
    let kept = if is_kept {
        ""
    } else {
        ", a connection per request"
    };
    format!("{pace}, {n_connections} connections{pipelined}{kept}, {threads} threads")
}

fn errors(record: &Record) -> String {
    let total = record.errors.total();
    let named: Vec<String> = record
        .errors
        .named()
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", grouped(*count)))
        .collect();
    let mut text = match total {
        0 => "none".to_owned(),
        _ => format!("{} ({})", grouped(total), named.join(", ")),
    };
    for (count, what) in [
        (record.unsent, "due and never sent"),
        (record.unanswered, "not answered at the end"),
    ] {
        if count > 0 {
            write!(text, "; {} {what}", grouped(count)).expect("writing to a String does not fail");
        }
    }
    text
}

fn connections(record: &Record) -> String {
    let lost = match record.connections_lost {
        0 => String::new(),
        lost => format!(", {} lost", grouped(lost)),
    };
    let connections = &record.connections;
    // Answers are counted by place: a connection is not what had them if others followed it there.
    let whose = match connections.asked {
        asked if record.connections_opened > asked => {
            format!("in each of {} places", grouped(asked))
        }
        _ => "each".to_owned(),
    };
    let even = if connections.answers_max > 0 {
        format!(
            ", {} to {} answers {whose}",
            grouped(connections.answers_min),
            grouped(connections.answers_max)
        )
    } else {
        String::new()
    };
    format!(
        "{} opened, {} at once{lost}{even}",
        grouped(record.connections_opened),
        grouped(connections.open_max)
    )
}

fn handshakes(tls: &Handshakes) -> String {
    let suite = tls.suite.as_deref().unwrap_or("no handshake");
    let failure = tls.failure.as_ref().map(|text| format!("; failed: {text}"));
    let times = [("p50", tls.handshake_us.p50), ("p99", tls.handshake_us.p99)];
    format!(
        "{suite}, {} handshakes, {} resumed, {}{}",
        grouped(tls.count),
        grouped(tls.resumed),
        named_times(&times),
        failure.unwrap_or_default()
    )
}

/// Why connections were slow or did not come to be.
fn trouble(record: &Record) -> Option<String> {
    let failures = record.connect_failures.named().into_iter();
    let network = record.network.unwrap_or_default();
    let counts = failures.chain([
        ("took a second or more", record.connects_over_1s),
        ("SYNs repeated on this machine", network.syn_retransmits),
        ("listen queue overflows", network.listen_overflows),
    ]);
    let named: Vec<String> = counts
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", grouped(count)))
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

fn summary(summary: &Summary) -> String {
    let times = [
        ("p50", summary.p50),
        ("p90", summary.p90),
        ("p99", summary.p99),
        ("p99.9", summary.p99_9),
        ("max", summary.max),
        ("mean", summary.mean),
        ("stdev", summary.stdev),
    ];
    named_times(&times)
}

fn named_times(times: &[(&str, Option<f64>)]) -> String {
    let time = |value: &Option<f64>| value.map_or_else(|| "-".to_owned(), time);
    let named: Vec<_> = times
        .iter()
        .map(|(name, value)| format!("{name} {}", time(value)))
        .collect();
    named.join("  ")
}

/// Microseconds in the unit that fits.
fn time(value_us: f64) -> String {
    match value_us {
        us if us < 1_000.0 => format!("{us:.0} µs"),
        us if us < 1_000_000.0 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

fn rate(per_s: f64) -> String {
    if per_s < 1_000.0 {
        return format!("{per_s:.1}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rates are positive and far below 2^64"
    )]
    grouped(per_s.round() as u64)
}

/// Digits in groups of three.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{grouped, rate, time};

    #[test]
    fn numbers_are_readable() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1 000", "1 234 567"]
        );
        assert_eq!([9.96, 123_456.7].map(rate), ["10.0", "123 457"]);
        assert_eq!(
            [12.4, 1_500.0, 2e6].map(time),
            ["12 µs", "1.50 ms", "2.00 s"]
        );
    }
}
