//! The books of a run: what was sent, what came back, what went wrong. One per thread, no locks;
//! summed at the end.

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::clock::CpuTime;
use crate::histogram::Latencies;
use crate::series::Series;

/// What can go wrong with a request, in the order it can.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// No connection: refused, unreachable, or not established within the timeout.
    Connect,
    /// No complete answer within the timeout.
    Timeout,
    /// The connection ended, in whatever way, before the first byte of the answer.
    Reset,
    /// The connection ended, in whatever way, in the middle of the answer.
    Short,
    /// A complete answer with a status other than the expected one.
    Status,
    /// The expected status, but a body of another length.
    Length,
    /// The expected status and length, but other bytes.
    Content,
    /// Bytes that are no HTTP response, or that belong to no request.
    Protocol,
}

/// Errors counted by class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ErrorCounts([u64; 8]);

impl ErrorCounts {
    pub(crate) fn of(&self, class: ErrorClass) -> u64 {
        self.0[class as usize]
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Why connections were not established, by reason.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq)]
pub(crate) struct ConnectFailures {
    /// No process listens.
    pub(crate) refused: u64,
    /// Not established in time.
    pub(crate) timeout: u64,
    /// The peer, or its full queue, ended it.
    pub(crate) reset: u64,
    pub(crate) unreachable: u64,
    /// No free local port: too many connections of this machine to that address are open or in
    /// `TIME_WAIT`.
    pub(crate) no_local_port: u64,
    /// The limit of open files, of this process or of the machine.
    pub(crate) no_descriptor: u64,
    /// The handshake failed, or its result does not do.
    pub(crate) tls: u64,
    pub(crate) other: u64,
}

impl ConnectFailures {
    pub(crate) fn count(&mut self, error: Errno) {
        *match error {
            Errno::CONNREFUSED => &mut self.refused,
            Errno::TIMEDOUT => &mut self.timeout,
            Errno::CONNRESET | Errno::PIPE => &mut self.reset,
            Errno::HOSTUNREACH | Errno::NETUNREACH => &mut self.unreachable,
            Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => &mut self.no_local_port,
            Errno::MFILE | Errno::NFILE => &mut self.no_descriptor,
            _ => &mut self.other,
        } += 1;
    }

    pub(crate) fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("refused", self.refused),
            ("timeout", self.timeout),
            ("reset", self.reset),
            ("unreachable", self.unreachable),
            ("no local port", self.no_local_port),
            ("no descriptor", self.no_descriptor),
            ("by TLS", self.tls),
            ("other", self.other),
        ]
    }

    fn add(&mut self, other: &Self) {
        self.refused += other.refused;
        self.timeout += other.timeout;
        self.reset += other.reset;
        self.unreachable += other.unreachable;
        self.no_local_port += other.no_local_port;
        self.no_descriptor += other.no_descriptor;
        self.tls += other.tls;
        self.other += other.other;
    }
}

/// The books of one thread, or of all after [`Tally::add`].
#[derive(Debug)]
pub(crate) struct Tally {
    /// Requests handed to a socket within the window.
    pub(crate) sent: u64,
    /// Valid answers within the window.
    pub(crate) completed: u64,
    /// Valid answers within the window to requests that are only to be under way.
    pub(crate) background: u64,
    /// Valid answers that came after the window, to requests sent in it.
    pub(crate) drained: u64,
    pub(crate) errors: ErrorCounts,
    /// Complete answers by status, valid or not.
    pub(crate) statuses: Box<[u64; 1_000]>,
    pub(crate) connections_opened: u64,
    /// Connections that ended within the window although they were to serve more requests.
    pub(crate) connections_lost: u64,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    /// Requests due within the window and never sent; open paces only.
    pub(crate) unsent: u64,
    /// Requests without an answer when the run was over.
    pub(crate) unanswered: u64,
    /// Answers whose body was compared byte by byte.
    pub(crate) bodies_compared: u64,
    pub(crate) latency: Latencies,
    /// Empty for the closed loop, where it equals `latency`.
    pub(crate) service: Latencies,
    pub(crate) schedule_lag: Latencies,
    /// From `connect` to established, of the whole run: most connections open before the window.
    pub(crate) connect: Latencies,
    /// Of the whole run.
    pub(crate) connect_failures: ConnectFailures,
    /// From the first byte of a handshake to its end, over the whole run; empty without TLS.
    pub(crate) handshake: Latencies,
    pub(crate) handshakes_resumed: u64,
    /// Handshakes that ended within the window, and those of them that resumed a session.
    pub(crate) handshakes_in_window: u64,
    pub(crate) resumed_in_window: u64,
    /// Version and cipher suite of the first connection.
    pub(crate) tls_suite: Option<String>,
    /// What the first failed handshake failed of.
    pub(crate) tls_failure: Option<String>,
    /// Connections open at once, at most; a sum of the threads' own maxima.
    pub(crate) open_max: u64,
    /// Connections open when counting ended.
    pub(crate) open_at_end: u64,
    /// Complete answers of the window, by place of a connection and its successors.
    pub(crate) answers_by_connection: Vec<u64>,
    pub(crate) series: Series,
    pub(crate) cpu: CpuTime,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            sent: 0,
            completed: 0,
            background: 0,
            drained: 0,
            errors: ErrorCounts::default(),
            statuses: Box::new([0; 1_000]),
            connections_opened: 0,
            connections_lost: 0,
            bytes_read: 0,
            bytes_written: 0,
            unsent: 0,
            unanswered: 0,
            bodies_compared: 0,
            latency: Latencies::new(),
            service: Latencies::new(),
            schedule_lag: Latencies::new(),
            connect: Latencies::new(),
            connect_failures: ConnectFailures::default(),
            handshake: Latencies::new(),
            handshakes_resumed: 0,
            handshakes_in_window: 0,
            resumed_in_window: 0,
            tls_suite: None,
            tls_failure: None,
            open_max: 0,
            open_at_end: 0,
            answers_by_connection: Vec::new(),
            series: Series::new(),
            cpu: CpuTime::default(),
        }
    }

    pub(crate) fn count_error(&mut self, class: ErrorClass) {
        self.errors.0[class as usize] += 1;
        self.series.count_error();
    }

    #[inline]
    pub(crate) fn count_completed(&mut self, latency_ns: u64) {
        self.completed += 1;
        self.latency.record(latency_ns);
        self.series.count_completed(latency_ns);
    }

    /// Adds the books of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.background += other.background;
        self.drained += other.drained;
        self.errors
            .0
            .iter_mut()
            .zip(other.errors.0)
            .for_each(|(sum, count)| *sum += count);
        let statuses = self.statuses.iter_mut().zip(other.statuses.iter());
        statuses.for_each(|(sum, count)| *sum += count);
        self.connections_opened += other.connections_opened;
        self.connections_lost += other.connections_lost;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.unsent += other.unsent;
        self.unanswered += other.unanswered;
        self.bodies_compared += other.bodies_compared;
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.schedule_lag.merge(&other.schedule_lag);
        self.connect.merge(&other.connect);
        self.connect_failures.add(&other.connect_failures);
        self.handshake.merge(&other.handshake);
        self.handshakes_resumed += other.handshakes_resumed;
        self.handshakes_in_window += other.handshakes_in_window;
        self.resumed_in_window += other.resumed_in_window;
        self.tls_suite = self.tls_suite.take().or(other.tls_suite.clone());
        self.tls_failure = self.tls_failure.take().or(other.tls_failure.clone());
        self.open_max += other.open_max;
        self.open_at_end += other.open_at_end;
        self.answers_by_connection
            .extend_from_slice(&other.answers_by_connection);
        self.series.add(other.series.clone());
        self.cpu += other.cpu;
    }
}

#[cfg(test)]
mod tests {
    use super::{ErrorClass, Tally};
    use crate::series::STEP_NS;

    #[test]
    fn sums_of_threads_are_complete() {
        let tally = |n_steps: u64| {
            let mut tally = Tally::new();
            tally.series.begin(0);
            for step in 0..n_steps {
                tally.series.tick(step * STEP_NS);
                tally.count_completed(1_000);
                tally.count_error(ErrorClass::Short);
            }
            tally.series.close();
            tally.statuses[200] = 5;
            tally.answers_by_connection.push(n_steps);
            tally
        };
        let mut sum = tally(1);
        sum.add(&tally(3));
        assert_eq!(
            (sum.completed, sum.errors.total(), sum.statuses[200]),
            (4, 4, 10)
        );
        assert_eq!(sum.errors.of(ErrorClass::Short), 4);
        assert_eq!(sum.latency.summary().count, 4);
        assert_eq!(sum.answers_by_connection, [1, 3]);
        let (_, steps) = sum.series.within(3 * STEP_NS);
        let completed: Vec<u64> = steps.iter().map(|step| step.completed).collect();
        assert_eq!(completed, [2, 1, 1]);
    }
}
