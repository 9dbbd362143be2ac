//! `fuzz [--seconds S] [--seed N] [TARGET…]`: campaigns against parsers and protocols, without nightly or instrumentation.
//!
//! Each target, all of them if none is named, gets composed and damaged inputs for S seconds (default 20). The same seed gives
//! the same run. When an invariant breaks, prints the input as a transcript line and the seed that shows it, and ends with
//! status 1. It is run from the checkout: `h1` mutates the inputs of `vectors/h1` too.

use std::path::Path;
use std::process::ExitCode;

use citius_testkit::rng::Rng;
use citius_testkit::transcript::inputs_under;
use citius_testkit::{
    campaign, client, fast_paths, forms, http2_client, http3, pg_session, postgres, redis, search,
};

const VECTORS: &str = "vectors/h1";

/// A name, how an input is composed (`None`: of the vectors), what checks it, and what its inputs are.
type Target = (
    &'static str,
    Option<fn(&mut Rng) -> Vec<u8>>,
    fn(&[u8], u64),
    &'static str,
);

const TARGETS: [Target; 8] = [
    ("h1", None, check_h1, "scripts of a client of HTTP/1"),
    (
        "h1-client",
        Some(client::compose_damaged),
        client::check,
        "responses of HTTP/1",
    ),
    (
        "h2-client",
        Some(http2_client::compose_damaged),
        http2_client::check,
        "scripts of a server of HTTP/2",
    ),
    (
        "h3",
        Some(http3::compose_damaged),
        http3::check,
        "scripts of a client of HTTP/3",
    ),
    ("forms", Some(forms::compose), forms::check, "forms"),
    (
        "pg",
        Some(postgres::compose),
        postgres::check,
        "sessions of a server of PostgreSQL",
    ),
    (
        "pg-session",
        Some(pg_session::compose),
        pg_session::check,
        "calls on sessions of PostgreSQL",
    ),
    (
        "redis",
        Some(redis::compose_damaged),
        redis::check,
        "replies of Redis",
    ),
];

struct Options {
    seconds: u64,
    seed: u64,
    targets: Vec<Target>,
}

fn main() -> ExitCode {
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(reason) => {
            let names = TARGETS.map(|(name, ..)| name).join(" | ");
            eprintln!("{reason}\nusage: fuzz [--seconds S] [--seed N] [{names}]…");
            return ExitCode::from(2);
        }
    };
    let corpus = match inputs_under(Path::new(VECTORS)) {
        Ok(corpus) => corpus,
        Err(error) => {
            eprintln!("{VECTORS}: {error}; run this from the checkout");
            return ExitCode::from(2);
        }
    };
    for (name, compose, check, inputs) in options.targets {
        let compose = |seed| match compose {
            Some(compose) => compose(&mut Rng::new(seed)),
            None => compose_h1(&corpus, seed),
        };
        match search::run(options.seconds, options.seed, compose, check) {
            Ok(n_inputs) => eprintln!("{name}: {n_inputs} {inputs}"),
            Err(found) => {
                eprintln!("{name}: {found}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn check_h1(input: &[u8], seed: u64) {
    campaign::check(input, seed);
    fast_paths::check(seed);
}

/// Two of three inputs are vectors, mutated and spliced with another.
fn compose_h1(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
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
        targets: Vec::new(),
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
            _ => {
                let target = TARGETS.into_iter().find(|(name, ..)| *name == word);
                options
                    .targets
                    .push(target.ok_or(format!("unknown target {word}"))?);
            }
        }
    }
    if options.targets.is_empty() {
        options.targets = TARGETS.to_vec();
    }
    Ok(options)
}
