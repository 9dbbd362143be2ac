//! The window in steps: how many answers, how many errors, how long the answers took.
//!
//! Steps are a tenth of a second; when there are more than [`STEPS_MAX`] of them, neighbours are
//! joined and the step is twice as long, so a run of any length has between 300 and 600 steps and
//! a fixed price. Latencies of a step are counted in buckets an eighth of an octave wide: good
//! enough to see a stall or a warm-up, 1 500 times smaller than the histogram of the run.

use std::iter::zip;

/// What happened in one step.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Step {
    pub(crate) completed: u64,
    pub(crate) errors: u64,
    sum_ns: u64,
    pub(crate) max_ns: u64,
    /// Bucket and how many latencies it holds, in order, without empty ones.
    buckets: Vec<(u16, u32)>,
}

/// The steps of one thread, or of all after [`Series::add`].
#[derive(Clone, Debug)]
pub(crate) struct Series {
    step_ns: u64,
    steps: Vec<Step>,
    /// The step that is being counted; its buckets are in `counts` until it ends.
    open: Step,
    is_open: bool,
    counts: Box<[u32; N_BUCKETS]>,
    end_ns: u64,
}

impl Series {
    pub(crate) fn new() -> Self {
        Self {
            step_ns: STEP_NS,
            steps: Vec::with_capacity(STEPS_MAX + 1),
            open: Step::default(),
            is_open: false,
            counts: Box::new([0; N_BUCKETS]),
            end_ns: u64::MAX,
        }
    }

    /// The first step begins at `begin_ns`.
    pub(crate) fn begin(&mut self, begin_ns: u64) {
        self.is_open = true;
        self.end_ns = begin_ns + self.step_ns;
    }

    /// Ends the steps that are over at `now_ns`.
    #[inline]
    pub(crate) fn tick(&mut self, now_ns: u64) {
        if now_ns >= self.end_ns {
            self.turn_over(now_ns);
        }
    }

    #[cold]
    fn turn_over(&mut self, now_ns: u64) {
        while now_ns >= self.end_ns {
            self.close_step();
            if self.steps.len() == STEPS_MAX {
                self.coarsen();
            }
            self.end_ns += self.step_ns;
        }
    }

    /// No step begins any more; what is still counted joins the last one.
    pub(crate) fn end(&mut self) {
        self.end_ns = u64::MAX;
    }

    #[inline]
    pub(crate) fn count_completed(&mut self, latency_ns: u64) {
        self.open.completed += 1;
        self.open.sum_ns += latency_ns;
        self.open.max_ns = self.open.max_ns.max(latency_ns);
        self.counts[bucket(latency_ns)] += 1;
    }

    #[inline]
    pub(crate) fn count_error(&mut self) {
        self.open.errors += 1;
    }

    fn close_step(&mut self) {
        let mut step = std::mem::take(&mut self.open);
        for (index, count) in self.counts.iter_mut().enumerate() {
            if *count > 0 {
                let index = u16::try_from(index).expect("there are fewer buckets");
                step.buckets.push((index, std::mem::take(count)));
            }
        }
        self.steps.push(step);
    }

    /// Joins neighbours.
    fn coarsen(&mut self) {
        self.step_ns *= 2;
        let steps = std::mem::take(&mut self.steps);
        let mut steps = steps.into_iter();
        while let Some(mut step) = steps.next() {
            if let Some(next) = steps.next() {
                step.join(&next);
            }
            self.steps.push(step);
        }
    }

    /// Closes the last step; a thread's series is complete then.
    pub(crate) fn close(&mut self) {
        if self.is_open {
            self.close_step();
            self.is_open = false;
        }
    }

    /// Adds the closed series of another thread.
    pub(crate) fn add(&mut self, mut other: Self) {
        while self.step_ns < other.step_ns {
            self.coarsen();
        }
        while other.step_ns < self.step_ns {
            other.coarsen();
        }
        if self.steps.len() < other.steps.len() {
            self.steps.resize(other.steps.len(), Step::default());
        }
        for (step, other) in zip(&mut self.steps, &other.steps) {
            step.join(other);
        }
    }

    /// The steps that a window of `span_ns` has, and their length in nanoseconds. What was counted
    /// behind the last one joins it: a thread may notice the end a little late.
    pub(crate) fn within(&self, span_ns: u64) -> (u64, Vec<Step>) {
        let n_steps = usize::try_from(span_ns.div_ceil(self.step_ns)).unwrap_or(usize::MAX);
        let mut steps = self.steps.clone();
        let late = steps.split_off(n_steps.max(1).min(steps.len()));
        if let Some(last) = steps.last_mut() {
            for step in &late {
                last.join(step);
            }
        }
        (self.step_ns, steps)
    }
}

impl Step {
    fn join(&mut self, other: &Self) {
        self.completed += other.completed;
        self.errors += other.errors;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        let mut sums = [0_u32; N_BUCKETS];
        for (index, count) in self.buckets.iter().chain(&other.buckets) {
            sums[usize::from(*index)] += count;
        }
        self.buckets = (0..).zip(sums).filter(|(_, count)| *count > 0).collect();
    }

    pub(crate) fn mean_ns(&self) -> Option<u64> {
        self.sum_ns.checked_div(self.completed)
    }

    /// The middle of the bucket that holds the value which `share` of the values do not exceed.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count below 2^32"
    )]
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<u64> {
        let n_values: u64 = self
            .buckets
            .iter()
            .map(|(_, count)| u64::from(*count))
            .sum();
        let wanted = ((n_values as f64 * share).ceil() as u64).max(1);
        let mut n_seen = 0;
        let (index, _) = self.buckets.iter().find(|(_, count)| {
            n_seen += u64::from(*count);
            n_seen >= wanted
        })?;
        Some(middle(*index).min(self.max_ns))
    }
}

/// Values of one bucket share their highest bit and the three behind it.
#[inline]
fn bucket(value_ns: u64) -> usize {
    let value = value_ns.max(8);
    let shift = 60 - value.leading_zeros();
    let octave = shift as usize;
    // Three bits of a 64-bit number fit any usize.
    #[expect(clippy::cast_possible_truncation, reason = "the value is below 8")]
    let part = (value >> shift) as usize & 7;
    octave << 3 | part
}

fn middle(index: u16) -> u64 {
    let (shift, part) = (index >> 3, u64::from(index & 7));
    ((part | 8) << shift) + (1 << shift >> 1)
}

/// The step a run begins with.
pub(crate) const STEP_NS: u64 = 100_000_000;
/// Steps of a record: a minute of tenths.
pub(crate) const STEPS_MAX: usize = 600;
const N_BUCKETS: usize = 61 * 8;

#[cfg(test)]
mod tests;
