//! Stop rule: when a run ends, and which requests it counts.
//!
//! Three phases, cut by two instants of a [`Window`]: before `begin_ns` requests are sent but not
//! counted (warm-up); until `end_ns` they are counted; then no request is sent any more, and
//! answers under way are read and checked but not counted (drain).
//!
//! ```text
//!   start      begin                         end          drained
//!     |  warm-up |   counted, CPU time taken  |   drain      |
//! ```
//! With a time limit an answer counts if it *arrives* between begin and end, whenever its request
//! was sent: in a steady state as many cross the one edge as the other. With a count, the request
//! must also be *sent* after begin, so that exactly that many are accounted for.

/// The stop rule: a time, a count, or whichever comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stop {
    pub(crate) after_ns: Option<u64>,
    pub(crate) requests: Option<u64>,
}

/// The instants of a run, the same for all threads.
#[expect(
    clippy::struct_field_names,
    reason = "units last, and these are all instants"
)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) start_ns: u64,
    pub(crate) begin_ns: u64,
    /// `u64::MAX` when only a count ends the run.
    pub(crate) end_ns: u64,
}

impl Stop {
    pub(crate) fn window(self, start_ns: u64, warmup_ns: u64) -> Window {
        let begin_ns = start_ns.saturating_add(warmup_ns);
        let end_ns = self
            .after_ns
            .map_or(u64::MAX, |span_ns| begin_ns.saturating_add(span_ns));
        Window {
            start_ns,
            begin_ns,
            end_ns,
        }
    }

    /// The requests that thread `thread` of `n_threads` may send.
    pub(crate) fn quota(self, thread: u64, n_threads: u64) -> Quota {
        let share = |total| total / n_threads + u64::from(thread < total % n_threads);
        Quota {
            left: self.requests.map(share),
        }
    }
}

/// Requests still to be sent by one thread; without a limit it never runs out.
#[derive(Debug)]
pub(crate) struct Quota {
    left: Option<u64>,
}

impl Quota {
    pub(crate) fn of(n_requests: u64) -> Self {
        Self {
            left: Some(n_requests),
        }
    }

    /// Takes one request; false when there is none left.
    #[inline]
    pub(crate) fn take(&mut self) -> bool {
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Gives back a request that was taken, but that no answer and no error will account for.
    pub(crate) fn give_back(&mut self) {
        if let Some(left) = &mut self.left {
            *left += 1;
        }
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == Some(0)
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Stop, Window};

    #[test]
    fn window_begins_after_the_warm_up_and_lasts_the_duration() {
        let stop = Stop {
            after_ns: Some(500),
            requests: None,
        };
        assert_eq!(
            stop.window(1_000, 200),
            Window {
                start_ns: 1_000,
                begin_ns: 1_200,
                end_ns: 1_700
            }
        );
    }

    #[test]
    fn window_of_a_count_is_open() {
        let stop = Stop {
            after_ns: None,
            requests: Some(3),
        };
        assert_eq!(stop.window(5, 0).end_ns, u64::MAX);
    }

    #[test]
    fn quotas_of_all_threads_sum_to_the_count() {
        for total in [0, 1, 7, 8, 9, 10_000] {
            let stop = Stop {
                after_ns: None,
                requests: Some(total),
            };
            let mut taken = 0;
            for thread in 0..4 {
                let mut quota = stop.quota(thread, 4);
                while quota.take() {
                    taken += 1;
                }
                assert!(quota.is_exhausted());
            }
            assert_eq!(taken, total);
        }
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut quota = Stop {
            after_ns: None,
            requests: Some(1),
        }
        .quota(0, 1);
        assert!(quota.take() && !quota.take());
        quota.give_back();
        assert!(quota.take() && !quota.take());
    }

    #[test]
    fn quota_without_a_count_never_ends() {
        let mut quota = Stop {
            after_ns: Some(1),
            requests: None,
        }
        .quota(0, 1);
        assert!((0..1_000).all(|_| quota.take()));
        assert!(!quota.is_exhausted() && !quota.is_limited());
    }
}
