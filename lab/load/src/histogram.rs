//! Latencies as `HdrHistogram`s: nanoseconds, three significant digits, merged without loss.
//!
//! Values above [`HIGHEST_NS`] are recorded as that value; none can be, while `--timeout` is lower.
//! Records carry the V2 deflate encoding in base64, which every `HdrHistogram` port reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// Latencies of one thread, or of all after [`Latencies::merge`].
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: hdrhistogram::Histogram<u64>,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        let histogram = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .expect("the bounds are constants");
        Self { histogram }
    }

    #[inline]
    pub(crate) fn record(&mut self, latency_ns: u64) {
        self.histogram.saturating_record(latency_ns);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.histogram
            .add(&other.histogram)
            .expect("all histograms have the same bounds");
    }

    /// The value that `percent` of the values do not exceed, in microseconds; `None` if there is
    /// no value.
    pub(crate) fn percentile_us(&self, percent: f64) -> Option<f64> {
        (!self.histogram.is_empty()).then(|| {
            // The histogram answers with the upper edge of a bucket, which may exceed the maximum.
            let value = self.histogram.value_at_quantile(percent / 100.0);
            microseconds(value.min(self.histogram.max()))
        })
    }

    /// How many values are `least_ns` or more.
    pub(crate) fn count_from(&self, least_ns: u64) -> u64 {
        self.histogram.count_between(least_ns, HIGHEST_NS)
    }

    pub(crate) fn max_us(&self) -> Option<f64> {
        (!self.histogram.is_empty()).then(|| microseconds(self.histogram.max()))
    }

    pub(crate) fn summary(&self) -> Summary {
        let some = |value_us: f64| (!self.histogram.is_empty()).then_some(value_us);
        Summary {
            min: some(microseconds(self.histogram.min())),
            mean: some(self.histogram.mean() / 1e3),
            stdev: some(self.histogram.stdev() / 1e3),
            p50: self.percentile_us(50.0),
            p90: self.percentile_us(90.0),
            p99: self.percentile_us(99.0),
            p99_9: self.percentile_us(99.9),
            max: self.max_us(),
            count: self.histogram.len(),
        }
    }

    /// The whole histogram: base64 of the V2 deflate encoding, values in nanoseconds.
    pub(crate) fn encode(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.histogram, &mut bytes)
            .expect("writing to a Vec does not fail");
        STANDARD.encode(bytes)
    }
}

/// A histogram in nine numbers, microseconds. Without values all but `count` are `None`: a zero
/// would read as a very fast server.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct Summary {
    pub(crate) min: Option<f64>,
    pub(crate) mean: Option<f64>,
    pub(crate) stdev: Option<f64>,
    pub(crate) p50: Option<f64>,
    pub(crate) p90: Option<f64>,
    pub(crate) p99: Option<f64>,
    pub(crate) p99_9: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) count: u64,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "at most an hour, three digits of it significant"
)]
fn microseconds(value_ns: u64) -> f64 {
    value_ns as f64 / 1e3
}

/// An hour. The range costs memory only: the buckets in use are what the cache holds.
pub(crate) const HIGHEST_NS: u64 = 3_600 * 1_000_000_000;
/// Values are kept to 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::serialization::Deserializer;

    use super::{HIGHEST_NS, Latencies};

    #[track_caller]
    fn assert_close(value: Option<f64>, expected: f64) {
        let value = value.expect("there are values");
        assert!(
            (value / expected - 1.0).abs() <= 0.001,
            "{value} is not {expected}"
        );
    }

    fn uniform() -> Latencies {
        let mut latencies = Latencies::new();
        (1..=100_000).for_each(|microsecond| latencies.record(microsecond * 1_000));
        latencies
    }

    #[test]
    fn percentiles_of_a_uniform_distribution() {
        let summary = uniform().summary();
        assert_close(summary.min, 1.0);
        assert_close(summary.p50, 50_000.0);
        assert_close(summary.p90, 90_000.0);
        assert_close(summary.p99, 99_000.0);
        assert_close(summary.p99_9, 99_900.0);
        assert_close(summary.max, 100_000.0);
        assert_close(summary.mean, 50_000.5);
        assert_close(summary.stdev, 100_000.0 / 12.0_f64.sqrt());
        assert_eq!(summary.count, 100_000);
    }

    #[test]
    fn merging_halves_equals_recording_all() {
        let (mut odd, mut even) = (Latencies::new(), Latencies::new());
        for microsecond in 1..=100_000_u64 {
            let half = if microsecond % 2 == 0 {
                &mut even
            } else {
                &mut odd
            };
            half.record(microsecond * 1_000);
        }
        odd.merge(&even);
        assert_eq!(odd.summary(), uniform().summary());
    }

    #[test]
    fn nothing_recorded_is_not_zero() {
        let summary = Latencies::new().summary();
        assert_eq!((summary.p99, summary.max, summary.count), (None, None, 0));
    }

    #[test]
    fn beyond_the_range_saturates() {
        let mut latencies = Latencies::new();
        latencies.record(2 * HIGHEST_NS);
        assert_close(latencies.max_us(), 3.6e9);
    }

    #[test]
    fn encoding_loses_nothing() {
        let latencies = uniform();
        let bytes = STANDARD.decode(latencies.encode()).expect("base64");
        let decoded: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .expect("V2 deflate");
        assert_eq!(decoded, latencies.histogram);
    }
}
