//! Pace: when requests are due. One of three independent values (see also `stop` and `wire`).
//!
//! A [`Schedule`] turns a pace into a sequence of due instants. It never reads a clock and never
//! waits: the engine compares [`Schedule::due_ns`] with its own clock and takes what is due with
//! [`Schedule::advance`]. A request that cannot be sent when it is due stays at the head of the
//! schedule and keeps its due instant; that is what makes the latencies of a constant rate safe
//! against coordinated omission, and it needs no queue, for any backlog.
//!
//! Threads share a pace without talking: thread `i` of `n` owns arrivals `i`, `i + n`, `i + 2n`…
//! of a constant rate or a ramp, and a Poisson process of an nth of the rate (the sum of
//! independent Poisson processes is one again).

/// What decides that a request is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// Closed loop: the answer to the previous request.
    Closed,
    /// A clock with equal steps, independent of the server.
    Constant { per_s: f64 },
    /// A clock with exponentially distributed steps: independent users, no rhythm.
    Poisson { per_s: f64 },
    /// Users that arrive evenly over a ramp, each with a connection and so many requests on it,
    /// one after the other.
    Users {
        users: u64,
        ramp_ns: u64,
        loops: u64,
    },
}

/// The due instants of one thread.
#[derive(Debug)]
pub(crate) struct Schedule {
    kind: Kind,
    due_ns: Option<u64>,
}

#[derive(Debug)]
enum Kind {
    /// Arrival `index` is due at `start_ns + index * step_ns`; multiplied, never summed, so that
    /// rounding does not accumulate.
    Even {
        start_ns: u64,
        step_ns: f64,
        index: u64,
        stride: u64,
        count: u64,
    },
    Poisson {
        mean_ns: f64,
        at_ns: f64,
        start_ns: u64,
        random: Random,
    },
}

impl Schedule {
    /// The share of thread `thread` of `n_threads`; `None` for the closed loop, which has none.
    pub(crate) fn new(
        pace: Pace,
        thread: u64,
        n_threads: u64,
        start_ns: u64,
        seed: u64,
    ) -> Option<Self> {
        let even = |step_ns, count| Kind::Even {
            start_ns,
            step_ns,
            index: thread,
            stride: n_threads,
            count,
        };
        let kind = match pace {
            Pace::Closed => return None,
            Pace::Constant { per_s } => even(1e9 / per_s, u64::MAX),
            Pace::Users { users, ramp_ns, .. } => even(float(ramp_ns) / float(users.max(1)), users),
            Pace::Poisson { per_s } => Kind::Poisson {
                mean_ns: 1e9 * float(n_threads) / per_s,
                at_ns: 0.0,
                start_ns,
                random: Random::new(seed.wrapping_add(thread)),
            },
        };
        let mut schedule = Self { kind, due_ns: None };
        schedule.due_ns = schedule.compute();
        Some(schedule)
    }

    /// When the next request is due; `None` when the schedule is exhausted.
    #[inline]
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.due_ns
    }

    /// Takes the next request off the schedule.
    pub(crate) fn advance(&mut self) {
        if let Kind::Even { index, stride, .. } = &mut self.kind {
            *index += *stride;
        }
        self.due_ns = self.compute();
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "offsets are positive, and a float of nanoseconds saturates when cast"
    )]
    fn compute(&mut self) -> Option<u64> {
        match &mut self.kind {
            Kind::Even {
                start_ns,
                step_ns,
                index,
                count,
                ..
            } => (*index < *count)
                .then(|| start_ns.saturating_add((float(*index) * *step_ns).round() as u64)),
            Kind::Poisson {
                mean_ns,
                at_ns,
                start_ns,
                random,
            } => {
                *at_ns -= *mean_ns * (1.0 - random.unit()).ln();
                Some(start_ns.saturating_add(*at_ns as u64))
            }
        }
    }
}

/// `SplitMix64` (Steele, Lea, Flood 2014): arrivals and mixes need speed and a seed, not secrecy.
#[derive(Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // The generator's own output separates the streams of neighbouring seeds.
        let mut random = Self { state: seed };
        random.state = random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Uniform in `0 <= x < 1`.
    fn unit(&mut self) -> f64 {
        float(self.next() >> 11) / float(1 << 53)
    }

    /// Uniform in `0 <= x < bound`; the bias of the multiplication is below `bound / 2^64`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the high half of a product of two u64")
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts and spans of a run fit 53 bits"
)]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests;
