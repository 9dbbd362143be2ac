//! The record of a run, schema 1: what the lab stores. Written as JSON, read back by tests.
//!
//! Times are in the unit their key ends with; histogram blobs are in `histogram_unit`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::clock::span_s;
use crate::histogram::{Latencies, Summary};
use crate::kernel::Network;
use crate::options::Options;
use crate::pace::Pace;
use crate::plan::{Plan, Protocol};
use crate::request::Entry;
use crate::series;
use crate::tally::{ConnectFailures, ErrorClass, ErrorCounts, Tally};

/// A record and what it was made of that it does not spell out.
#[derive(Debug)]
pub(crate) struct Result {
    pub(crate) record: Record,
    pub(crate) latency: Latencies,
}

/// Schema 1. Keys may be added; none changes its meaning without a new schema number.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Record {
    pub(crate) schema: u32,
    pub(crate) tool: String,
    pub(crate) version: String,
    pub(crate) url: String,
    pub(crate) options: Value,
    pub(crate) interrupted: bool,
    /// `CLOCK_MONOTONIC` of the window's begin and end.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// The same instants by the wall clock.
    pub(crate) begin_unix_s: f64,
    pub(crate) end_unix_s: f64,
    pub(crate) elapsed_s: f64,
    /// Valid answers.
    pub(crate) completed: u64,
    pub(crate) sent: u64,
    /// Due within the window and never sent: the server could not take them; open paces only.
    pub(crate) unsent: u64,
    /// Valid answers to requests of the mix that are in the background; not among `completed`.
    #[serde(default)]
    pub(crate) background: u64,
    /// Valid answers that came after the window.
    pub(crate) drained: u64,
    /// Under way when the run was over.
    pub(crate) unanswered: u64,
    pub(crate) connections_opened: u64,
    pub(crate) connections_lost: u64,
    pub(crate) connections: Connections,
    /// From `connect` to established, over the whole run.
    pub(crate) connect_us: Summary,
    pub(crate) connect_histogram: String,
    /// Connections that took a second or more: as good as certainly a repeated SYN.
    pub(crate) connects_over_1s: u64,
    pub(crate) connect_failures: ConnectFailures,
    /// What the kernel counted within the window; `null` where it does not tell.
    pub(crate) network: Option<Network>,
    /// `null` without TLS.
    pub(crate) tls: Option<Handshakes>,
    pub(crate) errors: Errors,
    pub(crate) statuses: BTreeMap<String, u64>,
    pub(crate) bodies_compared: u64,
    pub(crate) requests_per_s: f64,
    /// The rate that was asked for, of open paces that have one.
    pub(crate) asked_per_s: Option<f64>,
    /// What was sent of it.
    pub(crate) sent_per_s: f64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) latency_us: Summary,
    pub(crate) service_us: Summary,
    pub(crate) histogram_unit: String,
    pub(crate) latency_histogram: String,
    pub(crate) service_histogram: String,
    pub(crate) schedule_lag_us: Option<Lag>,
    pub(crate) schedule_lag_histogram: Option<String>,
    /// The length of a step of `intervals`.
    pub(crate) interval_s: f64,
    pub(crate) intervals: Vec<Step>,
    pub(crate) cpu_s: Cpu,
    pub(crate) cpu_us_per_request: Option<f64>,
    pub(crate) threads: Vec<Thread>,
}

/// Errors by class; see `tally::ErrorClass`.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Errors {
    pub(crate) connect: u64,
    pub(crate) timeout: u64,
    pub(crate) reset: u64,
    pub(crate) short: u64,
    pub(crate) status: u64,
    pub(crate) length: u64,
    pub(crate) content: u64,
    pub(crate) protocol: u64,
}

/// What the generator itself added to the schedule.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Lag {
    pub(crate) p50: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) max: Option<f64>,
}

/// One step of the series.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Step {
    /// The beginning of the step, from the begin of the window.
    pub(crate) at_s: f64,
    pub(crate) completed: u64,
    pub(crate) errors: u64,
    /// Latencies; percentiles to a sixteenth.
    pub(crate) mean_us: Option<f64>,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) max_us: Option<f64>,
}

/// How many connections there were, and how evenly they were served within the window. A
/// connection and those that replaced it count as one.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Connections {
    pub(crate) asked: u64,
    /// Open at once, at most.
    pub(crate) open_max: u64,
    pub(crate) open_at_end: u64,
    /// Those without a complete answer.
    pub(crate) idle: u64,
    pub(crate) answers_min: u64,
    pub(crate) answers_median: u64,
    pub(crate) answers_max: u64,
}

/// TLS over the whole run, but for the two counts that say otherwise.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Handshakes {
    pub(crate) count: u64,
    pub(crate) resumed: u64,
    /// Handshakes that ended within the window.
    #[serde(default)]
    pub(crate) in_window: u64,
    /// Those of them that resumed a session.
    #[serde(default)]
    pub(crate) resumed_in_window: u64,
    pub(crate) handshake_us: Summary,
    pub(crate) handshake_histogram: String,
    pub(crate) suite: Option<String>,
    /// What the first handshake that failed failed of.
    pub(crate) failure: Option<String>,
}

/// CPU time of the load threads within the window.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) user: f64,
    pub(crate) system: f64,
}

/// One thread's share.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Thread {
    pub(crate) cpu_s: f64,
    pub(crate) completed: u64,
}

impl Lag {
    fn new(lag: &Latencies) -> Self {
        Self {
            p50: lag.percentile_us(50.0),
            p99: lag.percentile_us(99.0),
            max: lag.max_us(),
        }
    }
}

impl Connections {
    fn new(asked: usize, sum: &Tally) -> Self {
        let mut answers = sum.answers_by_connection.clone();
        answers.sort_unstable();
        let at = |index: usize| answers.get(index).copied().unwrap_or_default();
        Self {
            asked: asked as u64,
            open_max: sum.open_max,
            open_at_end: sum.open_at_end,
            idle: answers.iter().filter(|count| **count == 0).count() as u64,
            answers_min: at(0),
            answers_median: at(answers.len() / 2),
            answers_max: at(answers.len().saturating_sub(1)),
        }
    }
}

impl Handshakes {
    fn new(sum: &Tally) -> Self {
        let handshake_us = sum.handshake.summary();
        Self {
            count: handshake_us.count,
            resumed: sum.handshakes_resumed,
            in_window: sum.handshakes_in_window,
            resumed_in_window: sum.resumed_in_window,
            handshake_us,
            handshake_histogram: sum.handshake.encode(),
            suite: sum.tls_suite.clone(),
            failure: sum.tls_failure.clone(),
        }
    }
}

impl Step {
    #[expect(
        clippy::cast_precision_loss,
        reason = "latencies fit 53 bits of nanoseconds"
    )]
    fn new(at_s: f64, step: &series::Step) -> Self {
        let us = |span_ns: u64| span_ns as f64 / 1e3;
        Self {
            at_s,
            completed: step.completed,
            errors: step.errors,
            mean_us: step.mean_ns().map(us),
            p50_us: step.quantile_ns(0.5).map(us),
            p99_us: step.quantile_ns(0.99).map(us),
            max_us: (step.completed > 0).then_some(us(step.max_ns)),
        }
    }
}

impl Thread {
    fn new(tally: &Tally) -> Self {
        Self {
            cpu_s: tally.cpu.total_s(),
            completed: tally.completed,
        }
    }
}

/// The counted window as it turned out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// The wall clock at the begin.
    pub(crate) begin_unix_ns: u64,
    pub(crate) network: Option<Network>,
    pub(crate) interrupted: bool,
}

impl Errors {
    pub(crate) fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("connect", self.connect),
            ("timeout", self.timeout),
            ("reset", self.reset),
            ("short", self.short),
            ("status", self.status),
            ("length", self.length),
            ("content", self.content),
            ("protocol", self.protocol),
        ]
    }
}

impl From<&ErrorCounts> for Errors {
    fn from(counts: &ErrorCounts) -> Self {
        Self {
            connect: counts.of(ErrorClass::Connect),
            timeout: counts.of(ErrorClass::Timeout),
            reset: counts.of(ErrorClass::Reset),
            short: counts.of(ErrorClass::Short),
            status: counts.of(ErrorClass::Status),
            length: counts.of(ErrorClass::Length),
            content: counts.of(ErrorClass::Content),
            protocol: counts.of(ErrorClass::Protocol),
        }
    }
}

impl Result {
    #[expect(clippy::cast_precision_loss, reason = "counts of a run fit 53 bits")]
    #[expect(
        clippy::too_many_lines,
        reason = "one pass over the books, a line per key"
    )]
    pub(crate) fn new(options: &Options, plan: &Plan, counted: Counted, tallies: &[Tally]) -> Self {
        let mut sum = Tally::new();
        for tally in tallies {
            sum.add(tally);
        }
        let span_ns = counted.end_ns - counted.begin_ns;
        let elapsed_s = span_s(span_ns);
        let per_s = |count: u64| {
            if elapsed_s > 0.0 {
                count as f64 / elapsed_s
            } else {
                0.0
            }
        };
        let (step_ns, steps) = sum.series.within(span_ns);
        let starts = (0..).map(|index: u64| span_s(step_ns * index));
        let is_closed = plan.pace == Pace::Closed;
        let service = if is_closed {
            &sum.latency
        } else {
            &sum.service
        };
        let statuses = sum
            .statuses
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0);
        let completed = sum.completed as f64;
        let record = Record {
            schema: 1,
            tool: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            url: options.url.clone(),
            options: effective(options, plan),
            interrupted: counted.interrupted,
            begin_ns: counted.begin_ns,
            end_ns: counted.end_ns,
            begin_unix_s: span_s(counted.begin_unix_ns),
            end_unix_s: span_s(counted.begin_unix_ns + span_ns),
            elapsed_s,
            completed: sum.completed,
            sent: sum.sent,
            unsent: sum.unsent,
            background: sum.background,
            drained: sum.drained,
            unanswered: sum.unanswered,
            connections_opened: sum.connections_opened,
            connections_lost: sum.connections_lost,
            connections: Connections::new(plan.transport.connections, &sum),
            connect_us: sum.connect.summary(),
            connect_histogram: sum.connect.encode(),
            connects_over_1s: sum.connect.count_from(SYN_REPEAT_NS),
            connect_failures: sum.connect_failures,
            network: counted.network,
            tls: plan.security.is_some().then(|| Handshakes::new(&sum)),
            errors: (&sum.errors).into(),
            statuses: statuses
                .map(|(status, count)| (status.to_string(), *count))
                .collect(),
            bodies_compared: sum.bodies_compared,
            requests_per_s: per_s(sum.completed),
            asked_per_s: match plan.pace {
                Pace::Constant { per_s } | Pace::Poisson { per_s } => Some(per_s),
                Pace::Closed | Pace::Users { .. } => None,
            },
            sent_per_s: per_s(sum.sent),
            bytes_read: sum.bytes_read,
            bytes_written: sum.bytes_written,
            latency_us: sum.latency.summary(),
            service_us: service.summary(),
            histogram_unit: "ns".to_owned(),
            latency_histogram: sum.latency.encode(),
            service_histogram: service.encode(),
            schedule_lag_us: (!is_closed).then(|| Lag::new(&sum.schedule_lag)),
            schedule_lag_histogram: (!is_closed).then(|| sum.schedule_lag.encode()),
            interval_s: span_s(step_ns),
            intervals: starts
                .zip(&steps)
                .map(|(at_s, step)| Step::new(at_s, step))
                .collect(),
            cpu_s: Cpu {
                user: sum.cpu.user_s,
                system: sum.cpu.system_s,
            },
            cpu_us_per_request: (sum.completed > 0).then(|| sum.cpu.total_s() * 1e6 / completed),
            threads: tallies.iter().map(Thread::new).collect(),
        };
        Self {
            record,
            latency: sum.latency,
        }
    }
}

/// Every option as it took effect.
fn effective(options: &Options, plan: &Plan) -> Value {
    let span = |span_ns: u64| span_s(span_ns);
    let (pace, rate, users, ramp_s) = match plan.pace {
        Pace::Closed => ("closed", None, None, None),
        Pace::Constant { per_s } => ("constant", Some(per_s), None, None),
        Pace::Poisson { per_s } => ("poisson", Some(per_s), None, None),
        Pace::Users { users, ramp_ns, .. } => ("users", None, Some(users), Some(span(ramp_ns))),
    };
    serde_json::json!({
        "pace": pace,
        "rate": rate,
        "users": users,
        "ramp_s": ramp_s,
        "loops": users.map(|_| plan.loops()),
        "connections": plan.transport.connections,
        "threads": plan.threads,
        "protocol": match plan.protocol {
            Protocol::Http1 => "http/1.1",
            Protocol::Http2 => "h2",
            Protocol::Http3 => "h3",
            Protocol::WebSocket => "websocket",
            Protocol::Rpc => "msgpack-rpc",
            Protocol::RpcQuic => "msgpack-rpc-quic",
            Protocol::Streams => "webtransport-streams",
            Protocol::Datagrams => "webtransport-datagrams",
        },
        "senders": plan.senders,
        "tls": plan.security.is_some(),
        "resumption": plan.security.is_some().then_some(!options.no_resumption),
        "pipeline": plan.transport.pipeline,
        "keepalive": plan.transport.keep_alive,
        "duration_s": plan.stop.after_ns.map(span),
        "requests": plan.stop.requests,
        "timeout_s": span(plan.timeout_ns),
        "warmup_s": span(plan.warmup_ns),
        "check_every": plan.check_every,
        "cpus": plan.cpus,
        "seed": plan.seed,
        "address": plan.address.to_string(),
        "fail_if": options.fail_if.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "mix": plan.mix.entries.iter().take(MIX_RECORDED).map(entry).collect::<Vec<_>>(),
        "mix_entries": plan.mix.entries.len(),
    })
}

fn entry(entry: &Entry) -> Value {
    let Entry {
        request,
        expectation,
        weight,
        is_background,
    } = entry;
    serde_json::json!({
        "weight": weight,
        "background": is_background,
        "method": request.method,
        "path": request.target,
        "headers": request.headers,
        "body_bytes": request.body.len(),
        "expect_status": expectation.status,
        "expect_length": expectation.length,
        "expect_body": expectation.body.is_some(),
    })
}

/// Of a long mix so many requests are in the record; the lab's seed makes the others again.
const MIX_RECORDED: usize = 8;
/// A SYN is repeated after a second (RFC 6298 §2.1); the kernel's clock is a little coarse.
const SYN_REPEAT_NS: u64 = 990_000_000;

#[cfg(test)]
pub(crate) mod tests;
