use super::{Pace, Random, Schedule};

fn dues(pace: Pace, thread: u64, n_threads: u64, count: usize) -> Vec<u64> {
    let mut schedule = Schedule::new(pace, thread, n_threads, 1_000, 7).expect("an open pace");
    let mut dues = Vec::new();
    while let (true, Some(due_ns)) = (dues.len() < count, schedule.due_ns()) {
        dues.push(due_ns);
        schedule.advance();
    }
    dues
}

#[test]
fn closed_loop_has_no_schedule() {
    assert!(Schedule::new(Pace::Closed, 0, 1, 0, 0).is_none());
}

#[test]
fn constant_rate_is_evenly_spaced_from_the_start() {
    let pace = Pace::Constant { per_s: 1_000_000.0 };
    assert_eq!(dues(pace, 0, 1, 4), [1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn constant_rate_does_not_drift() {
    let pace = Pace::Constant { per_s: 3.0 };
    let last = *dues(pace, 0, 1, 3_000_001).last().expect("not empty");
    assert_eq!(last, 1_000 + 1_000_000 * 1_000_000_000);
}

#[test]
fn threads_partition_the_arrivals_of_one_thread() {
    for pace in [
        Pace::Constant { per_s: 700.0 },
        Pace::Users {
            users: 30,
            ramp_ns: 2_000_000_000,
            loops: 1,
        },
    ] {
        let mut merged: Vec<u64> = (0..3)
            .flat_map(|thread| dues(pace, thread, 3, 10))
            .collect();
        merged.sort_unstable();
        assert_eq!(merged, dues(pace, 0, 1, 30));
    }
}

#[test]
fn users_arrive_evenly_and_end() {
    let pace = Pace::Users {
        users: 4,
        ramp_ns: 2_000,
        loops: 1,
    };
    assert_eq!(dues(pace, 0, 1, 100), [1_000, 1_500, 2_000, 2_500]);
}

#[test]
fn users_without_ramp_arrive_at_once() {
    assert_eq!(
        dues(
            Pace::Users {
                users: 3,
                ramp_ns: 0,
                loops: 1,
            },
            0,
            1,
            9
        ),
        [1_000; 3]
    );
}

#[test]
#[expect(clippy::cast_precision_loss, reason = "small numbers")]
fn poisson_has_the_mean_and_the_spread_of_an_exponential() {
    let arrivals = dues(Pace::Poisson { per_s: 20_000.0 }, 1, 2, 100_000);
    let gaps: Vec<f64> = arrivals
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Two threads share 20 000/s: 100 µs between arrivals of one of them; sd of an exponential
    // equals its mean. 100 000 gaps put both within 1.5 % with room.
    assert!((mean / 100_000.0 - 1.0).abs() < 0.015, "mean {mean}");
    assert!(
        (variance.sqrt() / mean - 1.0).abs() < 0.015,
        "sd {}",
        variance.sqrt()
    );
}

#[test]
fn same_seed_same_arrivals_other_thread_others() {
    let pace = Pace::Poisson { per_s: 1_000.0 };
    assert_eq!(dues(pace, 0, 2, 50), dues(pace, 0, 2, 50));
    assert_ne!(dues(pace, 0, 2, 50), dues(pace, 1, 2, 50));
}

#[test]
fn random_below_covers_its_range_evenly() {
    let mut random = Random::new(1);
    let mut counts = [0_u32; 5];
    for _ in 0..50_000 {
        counts[usize::try_from(random.below(5)).expect("below 5")] += 1;
    }
    assert!(
        counts.iter().all(|count| (9_500..10_500).contains(count)),
        "{counts:?}"
    );
}
