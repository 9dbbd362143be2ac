//! What is known of a request whose header section was refused: it never becomes a [`Head`](crate::Head), and the log
//! names it nevertheless.

use alloc::vec::Vec;

use crate::{Fault, Version};

/// A request whose header section was refused.
///
/// Method and target are as the client sent them, which may be malformed, and empty where the fault came before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHead {
    /// The rule that was broken.
    pub fault: Fault,
    /// The version that the client speaks, as far as it is known.
    pub version: Version,
    /// The method.
    pub method: Vec<u8>,
    /// The request target, cut to [`TARGET_KEPT_BYTES`](Self::TARGET_KEPT_BYTES).
    pub target: Vec<u8>,
    /// Bytes of the content of the response to it.
    pub response_bytes: u64,
}

impl RefusedHead {
    /// Bytes of a target that are kept; a line of the log quotes no more.
    pub const TARGET_KEPT_BYTES: usize = 1024;

    /// A request of which `method` and `target` were read, and `response_bytes` of content are sent for `fault`.
    pub fn new(
        fault: Fault,
        version: Version,
        (method, target): (&[u8], &[u8]),
        response_bytes: u64,
    ) -> Self {
        let cut = |text: &[u8]| text.get(..Self::TARGET_KEPT_BYTES).unwrap_or(text).to_vec();
        Self {
            fault,
            version,
            method: cut(method),
            target: cut(target),
            response_bytes,
        }
    }
}
