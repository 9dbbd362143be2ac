//! Every vector under `vectors/h1-client`, whole and cut everywhere; and every fault has one.

use std::collections::BTreeSet;
use std::path::Path;

use citius_h1::client::Fault;
use citius_testkit::client::{self, Transcript};

fn vectors() -> Vec<(String, Transcript)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/h1-client");
    client::all_under(&root).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_vector_comes_out_as_written_however_it_is_cut() {
    let vectors = vectors();
    let failures: Vec<String> = vectors
        .iter()
        .filter_map(|(name, vector)| Some(format!("{name}: {}", vector.replay().err()?)))
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
fn every_fault_has_a_vector() {
    let vectors = vectors();
    let shown: BTreeSet<&str> = vectors
        .iter()
        .flat_map(|(_, vector)| vector.faults())
        .collect();
    let all: BTreeSet<&str> = Fault::all().map(Fault::name).collect();
    assert_eq!(shown, all);
    assert!(Fault::all().all(|fault| fault.spec().starts_with("RFC")));
    let said = Fault::all().map(Fault::text);
    assert!(said.into_iter().all(|text| !text.starts_with("request")));
}
