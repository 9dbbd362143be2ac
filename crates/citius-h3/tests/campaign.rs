//! Composed and damaged scripts of a client: nothing panics, no cut shows, nothing hangs.

use citius_testkit::http3;
use citius_testkit::rng::Rng;

#[test]
fn no_cut_shows_and_nothing_hangs() {
    for seed in 1..4000 {
        let script = http3::compose(&mut Rng::new(seed));
        http3::check(&script, seed);
    }
}

#[test]
fn damage_does_no_harm() {
    for seed in 1..4000 {
        let script = http3::compose_damaged(&mut Rng::new(seed));
        http3::check(&script, seed);
    }
}
