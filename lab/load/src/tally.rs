//! The books of a run: what was sent, what came back, what went wrong. One per thread, no locks;
//! summed at the end.

use crate::clock::CpuTime;
use crate::histogram::Latencies;

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
    /// Bytes that are no HTTP answer, or that nobody asked for.
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

/// Valid answers and errors of one tenth of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    pub(crate) completed: u64,
    pub(crate) errors: u64,
}

/// The books of one thread, or of all after [`Tally::add`].
#[derive(Debug)]
pub(crate) struct Tally {
    /// Requests handed to a socket within the window.
    pub(crate) sent: u64,
    /// Valid answers within the window.
    pub(crate) completed: u64,
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
    /// One entry per [`INTERVAL_NS`] of the window.
    pub(crate) intervals: Vec<Interval>,
    pub(crate) cpu: CpuTime,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            sent: 0,
            completed: 0,
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
            intervals: Vec::with_capacity(1_024),
            cpu: CpuTime::default(),
        }
    }

    pub(crate) fn count_error(&mut self, class: ErrorClass) {
        self.errors.0[class as usize] += 1;
        if let Some(interval) = self.intervals.last_mut() {
            interval.errors += 1;
        }
    }

    #[inline]
    pub(crate) fn count_completed(&mut self) {
        self.completed += 1;
        if let Some(interval) = self.intervals.last_mut() {
            interval.completed += 1;
        }
    }

    /// Adds the books of another thread.
    pub(crate) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.completed += other.completed;
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
        let n_intervals = self.intervals.len().max(other.intervals.len());
        self.intervals.resize(n_intervals, Interval::default());
        for (sum, interval) in self.intervals.iter_mut().zip(&other.intervals) {
            sum.completed += interval.completed;
            sum.errors += interval.errors;
        }
        self.cpu += other.cpu;
    }
}

/// The step of the series that is kept; records join ten of them where a run is long.
pub(crate) const INTERVAL_NS: u64 = 100_000_000;

#[cfg(test)]
mod tests {
    use super::{ErrorClass, Interval, Tally};

    #[test]
    fn sums_of_threads_are_complete() {
        let tally = |n_intervals: usize| {
            let mut tally = Tally::new();
            for _ in 0..n_intervals {
                tally.intervals.push(Interval::default());
                tally.count_completed();
                tally.count_error(ErrorClass::Short);
            }
            tally.statuses[200] = 5;
            tally.latency.record(1_000);
            tally
        };
        let mut sum = tally(1);
        sum.add(&tally(3));
        assert_eq!(
            (sum.completed, sum.errors.total(), sum.statuses[200]),
            (4, 4, 10)
        );
        assert_eq!(sum.errors.of(ErrorClass::Short), 4);
        assert_eq!(sum.latency.summary().count, 2);
        let completed: Vec<u64> = sum.intervals.iter().map(|i| i.completed).collect();
        assert_eq!(completed, [2, 1, 1]);
    }
}
