//! Lines of the log that clients cause: so many of a kind in a minute, so that no client can fill the log.

use std::sync::Mutex;

use crate::sync::lock;

/// Lines of one kind in one span.
const LINES_MAX: u32 = 10;
const SPAN_MS: u64 = 60_000;

#[derive(Debug)]
struct Kind {
    name: &'static str,
    since_ms: u64,
    lines: u32,
    left_out: u32,
}

/// What was logged of each kind.
#[derive(Debug, Default)]
pub(crate) struct Ration(Mutex<Vec<Kind>>);

impl Ration {
    /// Whether a line of this kind is logged now: if so, how many were left out since the last one.
    pub(crate) fn take(&self, name: &'static str, now_ms: u64) -> Option<u32> {
        let mut kinds = lock(&self.0);
        let at = kinds.iter().position(|kind| kind.name == name);
        let at = at.unwrap_or_else(|| {
            kinds.push(Kind {
                name,
                since_ms: now_ms,
                lines: 0,
                left_out: 0,
            });
            kinds.len() - 1
        });
        let kind = kinds.get_mut(at)?;
        if now_ms.saturating_sub(kind.since_ms) >= SPAN_MS {
            kind.since_ms = now_ms;
            kind.lines = 0;
        }
        if kind.lines >= LINES_MAX {
            kind.left_out = kind.left_out.saturating_add(1);
            return None;
        }
        kind.lines += 1;
        Some(std::mem::take(&mut kind.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_kind_are_bounded_and_the_others_counted() {
        let ration = Ration::default();
        for _ in 0..LINES_MAX {
            assert_eq!(ration.take("a", 5), Some(0));
        }
        for _ in 0..3 {
            assert_eq!(ration.take("a", 5 + SPAN_MS - 1), None);
        }
        assert_eq!(ration.take("b", 6), Some(0), "each kind has its own");
        assert_eq!(ration.take("a", 5 + SPAN_MS), Some(3));
        assert_eq!(ration.take("a", 5 + SPAN_MS), Some(0));
    }
}
