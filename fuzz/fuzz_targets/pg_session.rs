//! Calls on a session of PostgreSQL, and what its server does: the campaigns of `citius_testkit::pg_session`, steered by coverage.
//!
//! The first eight bytes are the seed of what the pool is like, the rest are decisions.
#![no_main]

use citius_testkit::pg_session;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((seed, input)) = data.split_first_chunk::<8>() {
        pg_session::check(input, u64::from_le_bytes(*seed));
    }
});
