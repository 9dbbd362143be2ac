//! Every vector under `vectors/h1`, whole and cut everywhere; and every fault has one.

use std::path::Path;

use citius_http::{Blame, Fault};
use citius_testkit::driver::{Driver, Echo};
use citius_testkit::replay;
use citius_testkit::transcript::{self, Step, Transcript};

fn vectors() -> Vec<(String, Transcript)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/h1");
    transcript::all_under(&root).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_vector_comes_out_as_written_however_it_is_cut() {
    let vectors = vectors();
    let failures: Vec<String> = vectors
        .iter()
        .filter_map(|(name, vector)| {
            let reason = replay::replay_all_splits(vector).err()?;
            Some(format!("{name}: {reason}"))
        })
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {} vectors\n{}",
        failures.len(),
        vectors.len(),
        failures.join("\n")
    );
    assert!(vectors.len() >= 150, "only {} vectors found", vectors.len());
}

#[test]
fn a_head_that_was_read_before_means_the_same_again() {
    for (name, vector) in vectors() {
        let steps = vector.blocks.iter().flat_map(|block| &block.steps);
        let inputs: Vec<_> = steps
            .filter_map(|step| match step {
                Step::Input(bytes) => Some(bytes.clone()),
                _ => None,
            })
            .collect();
        let (mut one, mut other) = (Echo::default(), Echo::default());
        let mut first = Driver::new(&vector.limits, &mut one);
        first.offer(inputs.clone());
        first.finish();
        let (seen, written) = (first.seen.clone(), first.written.clone());
        let mut again = Driver::after(first, &vector.limits, &mut other);
        again.offer(inputs);
        again.finish();
        assert_eq!((again.seen, again.written), (seen, written), "{name}");
    }
}

#[test]
fn every_vector_expects_something() {
    for (name, vector) in vectors() {
        let is_empty = vector.blocks.iter().all(|block| {
            block.output.is_empty()
                && block.events.is_empty()
                && block.close.is_none()
                && block.reading.is_none()
                && block.deadline.is_none()
        });
        assert!(!is_empty, "{name} expects nothing");
    }
}

#[test]
fn every_fault_has_a_vector() {
    let vectors = vectors();
    let blocks = || vectors.iter().flat_map(|(_, vector)| &vector.blocks);
    // Those of HTTP/2, HTTP/3 and calls have their tests in citius-h2, citius-h3 and citius-rpc.
    let of_others = |fault: &&Fault| {
        [
            "RFC 8441",
            "RFC 9113",
            "RFC 9114",
            "RFC 9204",
            "RFC 9218",
            "RFC 9297",
            "RFC 754",
            "MessagePack-RPC",
        ]
        .iter()
        .any(|spec| fault.spec().starts_with(spec))
    };
    for &fault in Fault::ALL.iter().filter(|fault| !of_others(fault)) {
        let found = match fault.blame() {
            Blame::Peer => blocks().any(|block| block.fault == Some(fault)),
            Blame::App => blocks()
                .flat_map(|block| &block.events)
                .any(|event| event.starts_with("app-fault") && event.ends_with(fault.name())),
        };
        assert!(found, "no vector shows {fault:?}");
    }
}
