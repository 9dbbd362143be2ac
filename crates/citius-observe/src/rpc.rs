//! Codes of remote procedure calls over HTTP: gRPC's numbers, Connect's names.
//!
//! A response of HTTP says little of a call: gRPC's status is 200 also where the call failed. What serves the
//! call notes its code; of one that has none the status decides.

/// The names of the codes, by their numbers.
pub const RPC_CODES: [&str; 17] = [
    "ok",
    "canceled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];

/// The number of a code that is none of gRPC's: unknown.
const UNKNOWN: u8 = 2;

/// The code that a call is counted under: `code`, if it is one.
pub(crate) fn known(code: u8) -> u8 {
    if usize::from(code) < RPC_CODES.len() {
        code
    } else {
        UNKNOWN
    }
}

/// The code that a status of HTTP stands for.
pub(crate) fn of_status(status: u16) -> u8 {
    match status {
        200..300 => 0,
        499 => 1,
        400 | 415 | 422 => 3,
        408 | 504 => 4,
        404 => 5,
        403 => 7,
        413 | 429 => 8,
        409 => 10,
        405 | 501 => 12,
        500 => 13,
        502 | 503 => 14,
        401 => 16,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes() {
        for (status, name) in [
            (200, "ok"),
            (401, "unauthenticated"),
            (404, "not_found"),
            (499, "canceled"),
            (503, "unavailable"),
            (302, "unknown"),
        ] {
            assert_eq!(RPC_CODES[usize::from(of_status(status))], name);
        }
        assert_eq!(RPC_CODES[usize::from(known(16))], "unauthenticated");
        assert_eq!(RPC_CODES[usize::from(known(17))], "unknown");
    }
}
