//! Every vector under `vectors/h1`, whole and cut everywhere; and every fault has one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use citius_http::{Blame, Fault};
use citius_testkit::play;
use citius_testkit::transcript::Transcript;

fn vectors() -> BTreeMap<String, Transcript> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/h1");
    let mut folders = vec![root.clone()];
    let mut vectors = BTreeMap::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "t") {
                let (name, vector) = read(&root, &path);
                vectors.insert(name, vector);
            }
        }
    }
    vectors
}

fn read(root: &Path, path: &PathBuf) -> (String, Transcript) {
    let name = path
        .strip_prefix(root)
        .expect("found there")
        .display()
        .to_string();
    let text = std::fs::read_to_string(path).expect("readable");
    let vector = Transcript::parse(&text).unwrap_or_else(|reason| panic!("{name}: {reason}"));
    (name, vector)
}

#[test]
fn every_vector_comes_out_as_written_however_it_is_cut() {
    let vectors = vectors();
    let failures: Vec<String> = vectors
        .iter()
        .filter_map(|(name, vector)| {
            let reason = play::play_all_cuts(vector).err()?;
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
    let blocks = || vectors.values().flat_map(|vector| &vector.blocks);
    for &fault in Fault::ALL {
        let found = match fault.blame() {
            Blame::Peer => blocks().any(|block| block.fault == Some(fault)),
            Blame::App => blocks()
                .flat_map(|block| &block.events)
                .any(|event| event.starts_with("app-fault") && event.ends_with(fault.name())),
        };
        assert!(found, "no vector shows {fault:?}");
    }
}
