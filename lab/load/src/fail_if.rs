//! Conditions on a result: `METRIC OP VALUE`, as in `p99>20ms`, `errors>0.1%`, `rps<1000`.
//!
//! A condition on a figure that does not exist, say a percentile of no answers, holds: a gate must
//! not open because there is nothing to see.

use std::fmt;

use crate::options::parse_span;
use crate::record::Result as RunResult;

/// One condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Condition {
    metric: Metric,
    operator: Operator,
    /// Microseconds, a share, or a plain number, as the metric wants.
    threshold: f64,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Metric {
    Percentile(f64),
    Min,
    Mean,
    Stdev,
    Max,
    RequestsPerS,
    Completed,
    Errors,
    ErrorShare,
    /// What was sent of the rate that was asked for, as a share.
    Achieved,
    Unsent,
    Unanswered,
    /// The 99th percentile of the schedule lag.
    Lag,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Condition {
    /// # Errors  A sentence that shows the form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let form = "expected METRIC OP VALUE such as p99>20ms, errors>0.1% or rps<1000; metrics: \
                    p50, p99.9 (any pN), min, mean, stdev, max, lag, rps, completed, errors, \
                    achieved (of the rate, in %), unsent, unanswered; \
                    operators: < <= > >=";
        let start = text.find(['<', '>']).ok_or(form)?;
        let (name, rest) = text.split_at(start);
        let (operator, value) = match rest.as_bytes() {
            [b'<', b'=', ..] => (Operator::LessOrEqual, &rest[2..]),
            [b'>', b'=', ..] => (Operator::GreaterOrEqual, &rest[2..]),
            [b'<', ..] => (Operator::Less, &rest[1..]),
            _ => (Operator::Greater, &rest[1..]),
        };
        let value = value.trim();
        let metric = match name.trim() {
            "min" => Metric::Min,
            "mean" => Metric::Mean,
            "stdev" => Metric::Stdev,
            "max" => Metric::Max,
            "lag" => Metric::Lag,
            "rps" => Metric::RequestsPerS,
            "completed" => Metric::Completed,
            "achieved" => Metric::Achieved,
            "unsent" => Metric::Unsent,
            "unanswered" => Metric::Unanswered,
            "errors" if value.ends_with('%') => Metric::ErrorShare,
            "errors" => Metric::Errors,
            name => Metric::Percentile(parse_percentile(name).ok_or(form)?),
        };
        let threshold = metric
            .parse_value(value)
            .map_err(|error| format!("{error}; {form}"))?;
        Ok(Self {
            metric,
            operator,
            threshold,
            text: text.trim().to_owned(),
        })
    }

    /// Why the run fails, if this condition holds for it.
    pub(crate) fn held_by(&self, result: &RunResult) -> Option<String> {
        let Some(value) = self.metric.of(result) else {
            return Some(format!(
                "{self}: there is no such figure, nothing was measured"
            ));
        };
        let holds = match self.operator {
            Operator::Less => value < self.threshold,
            Operator::LessOrEqual => value <= self.threshold,
            Operator::Greater => value > self.threshold,
            Operator::GreaterOrEqual => value >= self.threshold,
        };
        holds.then(|| format!("{self}: it is {}", self.metric.show(value)))
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Metric {
    fn is_time(self) -> bool {
        use Metric::{Lag, Max, Mean, Min, Percentile, Stdev};
        matches!(self, Percentile(_) | Min | Mean | Stdev | Max | Lag)
    }

    fn parse_value(self, value: &str) -> Result<f64, String> {
        if self.is_time() {
            if value.ends_with(|c: char| c.is_ascii_digit()) {
                return Err(format!("{value:?} needs a unit, such as ms"));
            }
            #[expect(clippy::cast_precision_loss, reason = "a threshold has a few digits")]
            return parse_span(value).map(|span| span.0 as f64 / 1e3);
        }
        let (number, scale) = match (self, value.strip_suffix('%')) {
            (Self::ErrorShare | Self::Achieved, Some(number)) => (number, 0.01),
            _ => (value, 1.0),
        };
        match number.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number * scale),
            _ => Err(format!("{value:?} is not a number")),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of a run fit 53 bits")]
    fn of(self, result: &RunResult) -> Option<f64> {
        let latency = &result.record.latency_us;
        let errors = result.record.errors.total();
        let n_judged = result.record.completed + errors;
        match self {
            Self::Percentile(percent) => result.latency.percentile_us(percent),
            Self::Min => latency.min,
            Self::Mean => latency.mean,
            Self::Stdev => latency.stdev,
            Self::Max => latency.max,
            Self::Lag => result
                .record
                .schedule_lag_us
                .as_ref()
                .and_then(|lag| lag.p99),
            Self::RequestsPerS => Some(result.record.requests_per_s),
            Self::Completed => Some(result.record.completed as f64),
            Self::Errors => Some(errors as f64),
            Self::Achieved => result
                .record
                .asked_per_s
                .map(|asked| result.record.sent_per_s / asked),
            Self::Unsent => Some(result.record.unsent as f64),
            Self::Unanswered => Some(result.record.unanswered as f64),
            Self::ErrorShare => (n_judged > 0).then(|| errors as f64 / n_judged as f64),
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Self::ErrorShare | Self::Achieved => format!("{:.4}%", value * 100.0),
            _ if self.is_time() => format!("{:.3}ms", value / 1e3),
            _ => format!("{value}"),
        }
    }
}

/// `p99`, `p99.9`, and `p99_9` as the record spells it.
fn parse_percentile(name: &str) -> Option<f64> {
    let percent: f64 = name.strip_prefix('p')?.replace('_', ".").parse().ok()?;
    (0.0..=100.0).contains(&percent).then_some(percent)
}

#[cfg(test)]
mod tests;
