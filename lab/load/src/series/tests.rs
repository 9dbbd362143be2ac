use super::{N_BUCKETS, STEP_NS, STEPS_MAX, Series, bucket, middle};

#[test]
fn a_bucket_holds_values_within_an_eighth_of_each_other() {
    let values =
        (3..64).flat_map(|bit| [1_u64 << bit, (1 << bit) + (1 << bit) / 3, !0 >> (63 - bit)]);
    for value_ns in values {
        let index = bucket(value_ns);
        assert!(index < N_BUCKETS, "{value_ns}");
        let middle = middle(index.try_into().expect("small"));
        let error = middle.abs_diff(value_ns);
        assert!(error <= value_ns / 12, "{value_ns} became {middle}");
    }
    assert!(bucket(0) < 16, "below 8 ns all is the same");
}

#[test]
fn every_answer_is_in_the_step_it_came_in() {
    let mut series = Series::new();
    series.begin(1_000);
    series.count_completed(10_000);
    series.tick(1_000 + STEP_NS);
    series.tick(1_000 + 3 * STEP_NS);
    series.count_error();
    series.end();
    series.close();
    let (step_ns, steps) = series.within(4 * STEP_NS);
    let counts: Vec<_> = steps
        .iter()
        .map(|step| (step.completed, step.errors))
        .collect();
    assert_eq!(
        (step_ns, counts),
        (STEP_NS, vec![(1, 0), (0, 0), (0, 0), (0, 1)])
    );
    assert_eq!(
        (steps[0].mean_ns(), steps[0].max_ns),
        (Some(10_000), 10_000)
    );
    assert_eq!(
        (steps[1].mean_ns(), steps[1].quantile_ns(0.5)),
        (None, None)
    );
}

#[test]
fn what_comes_behind_the_window_joins_its_last_step() {
    let mut series = Series::new();
    series.begin(0);
    for step in 0..5 {
        series.tick(step * STEP_NS);
        series.count_completed(1);
    }
    series.close();
    let counts = |span_ns| -> Vec<u64> {
        let (_, steps) = series.within(span_ns);
        steps.iter().map(|step| step.completed).collect()
    };
    assert_eq!(counts(5 * STEP_NS), [1, 1, 1, 1, 1]);
    assert_eq!(counts(3 * STEP_NS - 1), [1, 1, 3]);
    assert_eq!(counts(0), [5]);
}

#[test]
fn long_runs_have_longer_steps_and_lose_nothing() {
    let long = |n_steps: u64| {
        let mut series = Series::new();
        series.begin(0);
        for step in 0..n_steps {
            series.tick(step * STEP_NS);
            series.count_completed(1_000);
            series.count_completed(9_000);
        }
        series.close();
        series
    };
    let n_steps = 3 * STEPS_MAX as u64;
    let mut series = long(n_steps);
    let (step_ns, steps) = series.within(n_steps * STEP_NS);
    assert_eq!((step_ns, steps.len()), (4 * STEP_NS, STEPS_MAX * 3 / 4));
    assert!(
        steps
            .iter()
            .all(|step| step.completed == 8 && step.mean_ns() == Some(5_000))
    );
    // Another thread that ended before its steps were joined.
    series.add(long(STEPS_MAX as u64 - 1));
    let (_, steps) = series.within(n_steps * STEP_NS);
    let n_completed: u64 = steps.iter().map(|step| step.completed).sum();
    assert_eq!(n_completed, 2 * (n_steps + STEPS_MAX as u64 - 1));
    assert_eq!(steps[0].completed, 16);
}

#[test]
fn quantiles_are_near_what_they_stand_for() {
    let mut series = Series::new();
    series.begin(0);
    for value in 1..=1_000 {
        series.count_completed(value * 1_000);
    }
    series.close();
    let (_, steps) = series.within(STEP_NS);
    for (share, expected_ns) in [(0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
        let found_ns = steps[0].quantile_ns(share).expect("there are values");
        assert!(
            found_ns.abs_diff(expected_ns) <= expected_ns / 12,
            "{share}: {found_ns}"
        );
    }
}
