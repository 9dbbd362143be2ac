//! Token buckets in memory that all workers share: a key and a rate in, "now" or "not before" out.
//!
//! A bucket is one 64-bit cell: the time at which it will be full again (the generic cell rate algorithm), in
//! sixteenths of the interval between two tokens, and a fingerprint of its key. One compare-and-exchange takes a
//! token, so that the count is exact over all processes without a lock. A bucket that is full is a free cell.
//!
//! Layout: two cells of a secret, against keys that are chosen to collide; one cell for each partition, the hash
//! of the name of what uses it; the partitions, of sets of eight cells each. A key belongs to one set. If eight
//! others of the set are not full, the one that is closest to it makes room: its client gets its tokens early,
//! none is refused for it.

use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many users with names of their own the memory has room for.
pub const PARTITIONS: usize = 16;
/// Cells of the secret.
const SECRET_CELLS: usize = 2;
const HEADER_CELLS: usize = SECRET_CELLS + PARTITIONS;
/// Cells of a set.
const WAYS: usize = 8;
const UNITS_PER_TOKEN: u64 = 16;
const TIME_BITS: u32 = 44;
const TIME_MASK: u64 = (1 << TIME_BITS) - 1;
/// Tokens that a bucket holds at most: a quarter of what the time can say.
pub const BURST_MAX: u64 = (1 << (TIME_BITS - 2)) / UNITS_PER_TOKEN;

/// How old the time may be that a process takes tokens by: it may be stopped after it has read its clock.
const LATE_NS: u64 = 60_000_000_000;

/// The buckets of one user.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    secret: [u64; SECRET_CELLS],
    cells: &'static [AtomicU64],
}

/// How fast buckets fill, and how much they hold.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Nanoseconds until there is one more token.
    pub interval_ns: u64,
    /// Tokens of a full bucket.
    pub burst: u64,
}

/// What became of a request for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Whether they were there.
    pub is_allowed: bool,
    /// Tokens that are left.
    pub remaining: u64,
    /// How long until there are enough; 0 if there were.
    pub retry_ns: u64,
    /// How long until the bucket is full.
    pub full_ns: u64,
}

impl Buckets {
    /// The buckets of the user called `name`, the same in all processes; `None` if there is no partition left.
    pub fn open(cells: &'static [AtomicU64], name: &[u8]) -> Option<Self> {
        let (header, rest) = cells.split_at_checked(HEADER_CELLS)?;
        let secret = [0, 1].map(|index: usize| header[index].load(Ordering::Relaxed));
        let wanted = hash(secret, name).max(1);
        let each = rest.len() / PARTITIONS / WAYS * WAYS;
        let index = header[SECRET_CELLS..].iter().position(|cell| {
            match cell.compare_exchange(0, wanted, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => true,
                Err(there) => there == wanted,
            }
        })?;
        let cells = &rest[index * each..(index + 1) * each];
        (!cells.is_empty()).then_some(Self { secret, cells })
    }

    /// Takes `count` tokens of the bucket of `key`, or none.
    ///
    /// `now_ns` is a monotonic time that all processes share. `rate` is the same for all requests of a name.
    pub fn take(&self, key: &[u8], count: u64, rate: Rate, now_ns: u64) -> Taken {
        let hash = hash(self.secret, key);
        // Different bits for the set and for the fingerprint within it; 0 is an empty cell.
        let fingerprint = (hash >> TIME_BITS).max(1);
        let set = usize::try_from(hash & TIME_MASK).unwrap_or_default() % (self.cells.len() / WAYS);
        let set = &self.cells[set * WAYS..(set + 1) * WAYS];
        let now = units(now_ns, rate);
        loop {
            let found = set
                .iter()
                .map(|cell| (cell, cell.load(Ordering::Acquire)))
                .find(|(_, value)| value >> TIME_BITS == fingerprint);
            let is_new = found.is_none();
            let (cell, value) = found.unwrap_or_else(|| victim(set, now, rate));
            let debt = if is_new { 0 } else { debt(value, now, rate) };
            let (taken, owed) = decide(debt, count, rate);
            if !taken.is_allowed {
                return taken;
            }
            let made = fingerprint << TIME_BITS | now.wrapping_add(owed) & TIME_MASK;
            if cell
                .compare_exchange(value, made, Ordering::AcqRel, Ordering::Acquire)
                .is_err()
            {
                continue;
            }
            // Another process may have put the same key into another cell at the same time.
            let is_double = is_new
                && set.iter().any(|other| {
                    !std::ptr::eq(other, cell)
                        && other.load(Ordering::Acquire) >> TIME_BITS == fingerprint
                });
            if is_double
                && cell
                    .compare_exchange(made, 0, Ordering::AcqRel, Ordering::Acquire)
                    .is_ok()
            {
                continue;
            }
            return taken;
        }
    }
}

/// What a bucket lacks to be full, in units; 0 for a cell without a bucket.
///
/// It is more than the bucket holds where `now` was read before the time by which another process has counted: that
/// bucket is empty.
fn debt(value: u64, now: u64, rate: Rate) -> u64 {
    let full_at = value & TIME_MASK;
    let ahead = full_at.wrapping_sub(now) & TIME_MASK;
    let burst = rate.burst.min(BURST_MAX) * UNITS_PER_TOKEN;
    let late = units(LATE_NS, rate).min(BURST_MAX * UNITS_PER_TOKEN);
    // Anything beyond is a time in the past, or one that the clock has come round to.
    if value == 0 || ahead > burst + late {
        0
    } else {
        ahead
    }
}

/// The cell that makes room: an empty one, or the one that lacks least.
fn victim(set: &[AtomicU64], now: u64, rate: Rate) -> (&AtomicU64, u64) {
    set.iter()
        .map(|cell| (cell, cell.load(Ordering::Acquire)))
        .min_by_key(|(_, value)| debt(*value, now, rate))
        .expect("a set has eight cells")
}

/// Whether a bucket that lacks `debt` has `count` tokens, and what it lacks then.
fn decide(debt: u64, count: u64, rate: Rate) -> (Taken, u64) {
    let burst = rate.burst.min(BURST_MAX) * UNITS_PER_TOKEN;
    let owed = debt.saturating_add(count.saturating_mul(UNITS_PER_TOKEN));
    let is_allowed = owed <= burst;
    let left = if is_allowed { owed } else { debt };
    let ns = |units: u64| {
        let exact = u128::from(units) * u128::from(rate.interval_ns);
        u64::try_from(exact.div_ceil(u128::from(UNITS_PER_TOKEN))).unwrap_or(u64::MAX)
    };
    let taken = Taken {
        is_allowed,
        remaining: burst.saturating_sub(left) / UNITS_PER_TOKEN,
        retry_ns: ns(owed.saturating_sub(burst)),
        full_ns: ns(left),
    };
    (taken, owed)
}

fn units(now_ns: u64, rate: Rate) -> u64 {
    let exact =
        u128::from(now_ns) * u128::from(UNITS_PER_TOKEN) / u128::from(rate.interval_ns.max(1));
    u64::try_from(exact & u128::from(TIME_MASK)).unwrap_or_default()
}

fn hash(secret: [u64; SECRET_CELLS], bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in secret {
        hasher.write_u64(part);
    }
    hasher.write(bytes);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const RATE: Rate = Rate {
        interval_ns: SECOND / 10,
        burst: 5,
    };

    fn memory(cells: usize) -> &'static [AtomicU64] {
        Box::leak((0..cells).map(|_| AtomicU64::new(0)).collect())
    }

    fn buckets() -> Buckets {
        Buckets::open(memory(HEADER_CELLS + PARTITIONS * 64), b"test").expect("room for one")
    }

    #[test]
    fn a_bucket_gives_its_burst_and_fills_at_its_rate() {
        let (buckets, start) = (buckets(), 1000 * SECOND);
        for left in (0..5).rev() {
            let taken = buckets.take(b"a", 1, RATE, start);
            assert_eq!((taken.is_allowed, taken.remaining), (true, left));
        }
        let refused = buckets.take(b"a", 1, RATE, start);
        assert_eq!((refused.is_allowed, refused.retry_ns), (false, SECOND / 10));
        assert_eq!(refused.full_ns, SECOND / 2);
        assert!(
            !buckets
                .take(b"a", 1, RATE, start + SECOND / 10 - 10_000_000)
                .is_allowed
        );
        assert!(buckets.take(b"a", 1, RATE, start + SECOND / 10).is_allowed);
        assert!(!buckets.take(b"a", 1, RATE, start + SECOND / 10).is_allowed);
        assert_eq!(
            buckets.take(b"a", 1, RATE, start + 60 * SECOND).remaining,
            4
        );
        assert!(!buckets.take(b"b", 6, RATE, start).is_allowed);
        assert_eq!(buckets.take(b"b", 5, RATE, start).remaining, 0);
    }

    #[test]
    fn names_have_buckets_of_their_own_until_there_is_no_room() {
        let cells = memory(HEADER_CELLS + PARTITIONS * 64);
        let opened: Vec<_> = (0..PARTITIONS)
            .map(|name| Buckets::open(cells, &[u8::try_from(name).unwrap()]).unwrap())
            .collect();
        for buckets in &opened {
            assert_eq!(buckets.take(b"a", 5, RATE, SECOND).remaining, 0);
        }
        assert!(Buckets::open(cells, b"one more").is_none());
        let again = Buckets::open(cells, &[3]).unwrap();
        assert!(!again.take(b"a", 1, RATE, SECOND).is_allowed);
    }

    #[test]
    fn a_full_set_gives_up_the_bucket_that_lacks_least() {
        let one_set = Buckets::open(memory(HEADER_CELLS + PARTITIONS * WAYS), b"x").unwrap();
        for key in 0..8_u8 {
            assert!(
                one_set
                    .take(&[key], 5, RATE, SECOND + u64::from(key) * 20_000_000)
                    .is_allowed
            );
        }
        let now = SECOND + 200_000_000;
        assert!(one_set.take(&[100], 5, RATE, now).is_allowed);
        // The first had filled most; the last is still known.
        assert!(!one_set.take(&[7], 5, RATE, now).is_allowed);
    }

    /// scale S1: an empty bucket was taken for a full one by a process whose clock reading was a little older.
    #[test]
    fn a_time_that_was_read_earlier_fills_no_bucket() {
        for per_second in [1, 100, 1000, 5000, 1_000_000] {
            let rate = Rate {
                interval_ns: SECOND / per_second,
                burst: per_second,
            };
            for late_ns in [1, 1_000, 100_000, 50_000_000, 30 * SECOND] {
                let (buckets, start) = (buckets(), 1000 * SECOND);
                assert!(buckets.take(b"a", per_second, rate, start).is_allowed);
                let taken = buckets.take(b"a", 1, rate, start - late_ns);
                assert!(!taken.is_allowed, "{per_second}/s, {late_ns} ns late");
                assert!(
                    buckets
                        .take(b"a", 1, rate, start + rate.interval_ns)
                        .is_allowed
                );
                assert_eq!(
                    buckets.take(b"a", 1, rate, start + 3600 * SECOND).remaining,
                    per_second - 1
                );
            }
        }
    }

    /// Processes whose clock readings differ admit, in all, what the rate allows.
    #[test]
    fn processes_that_are_late_by_turns_admit_the_rate() {
        for per_second in [100, 1000, 5000] {
            let rate = Rate {
                interval_ns: SECOND / per_second,
                burst: per_second,
            };
            let (buckets, start, seconds) = (buckets(), 1000 * SECOND, 4);
            let step = SECOND / per_second / 3;
            let mut admitted = 0;
            for turn in 0..seconds * per_second * 3 {
                let late = [0, 250_000, 20_000, 3_000_000][usize::try_from(turn % 4).unwrap()];
                let now = start + turn * step - late;
                admitted += u64::from(buckets.take(b"a", 1, rate, now).is_allowed);
            }
            assert!(
                admitted <= per_second * (seconds + 1),
                "{per_second}/s: {admitted}"
            );
            assert!(
                admitted >= per_second * (seconds + 1) * 99 / 100,
                "{per_second}/s: {admitted}"
            );
        }
    }

    #[test]
    fn threads_that_take_at_once_get_exactly_the_burst() {
        for round in 0..200_u64 {
            let buckets = buckets();
            let rate = Rate {
                interval_ns: 3600 * SECOND,
                burst: 50,
            };
            let given: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4)
                    .map(|_| {
                        scope.spawn(move || {
                            (0..40)
                                .filter(|_| buckets.take(b"k", 1, rate, round).is_allowed)
                                .count()
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap())
                    .sum()
            });
            assert_eq!(given, 50);
        }
    }
}
