//! `fuzz-h1 [--seconds S] [--seed N] [VECTORS]`: storms without nightly or instrumentation.
//!
//! Mutates the inputs of the vectors (default `vectors/h1`) and composes requests of its own, for S seconds
//! (default 20). The same seed gives the same run. When an invariant breaks, prints the input as a
//! transcript line and the seed that shows it, and ends with status 1.

use std::path::PathBuf;
use std::process::ExitCode;

use citius_testkit::rng::Rng;
use citius_testkit::transcript::inputs_under;
use citius_testkit::{campaign, fast_paths, search};

struct Options {
    seconds: u64,
    seed: u64,
    vectors: PathBuf,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("{reason}\nusage: fuzz-h1 [--seconds S] [--seed N] [VECTORS]");
            return ExitCode::from(2);
        }
    };
    let corpus = match inputs_under(&options.vectors) {
        Ok(corpus) => corpus,
        Err(error) => {
            eprintln!(
                "{}: {error}; run this from the checkout",
                options.vectors.display()
            );
            return ExitCode::from(2);
        }
    };
    eprintln!("{} inputs, seed {}", corpus.len(), options.seed);
    search::run(
        options.seconds,
        options.seed,
        |seed| brew(&corpus, seed),
        check,
        "storms weathered",
    )
}

fn check(input: &[u8], seed: u64) {
    campaign::check(input, seed);
    fast_paths::check(seed);
}

/// The input of campaign `seed`.
fn brew(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed);
    let one = corpus.get(rng.below(corpus.len()));
    let Some(one) = one.filter(|_| !rng.once_in(3)) else {
        return campaign::compose(&mut rng);
    };
    let other = corpus.get(rng.below(corpus.len()));
    let mut input = one.clone();
    for _ in 0..=rng.below(4) {
        campaign::mutate(&mut rng, &mut input, other.map_or(&[], Vec::as_slice));
    }
    input
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options {
        seconds: 20,
        seed: 1,
        vectors: "vectors/h1".into(),
    };
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or(format!("{word} needs a number"))?;
            value
                .parse()
                .map_err(|_| format!("{word} needs a number, not {value:?}"))
        };
        match word.as_str() {
            "--seconds" => options.seconds = number()?,
            "--seed" => options.seed = number()?,
            _ if word.starts_with('-') => return Err(format!("unknown option {word}")),
            _ => options.vectors = word.into(),
        }
    }
    Ok(options)
}
