//! What a client may cost without getting on, in one place.
//!
//! | abuse | what is counted | limit |
//! |---|---|---|
//! | rapid reset (CVE-2023-44487) | requests the client resets before their responses are sent, beyond half of all | `h3_resets_max` |
//! | provoked resets (CVE-2025-8671) | requests reset for the client's mistake, or rejected | `h3_resets_max` |
//! | QPACK bombs in heads and trailers (CVE-2025-64702, CVE-2026-40898) | what a section is once decoded; reading stops there | `head_bytes_max`, `trailer_bytes_max`, `fields_max` |
//! | blocked streams | heads that wait for the table | `h3_blocked_streams_max` |
//! | an encoder that only inserts | instructions that no request pays for | `h3_idle_frames_max` |
//! | streams that must stay open, reopened (CVE-2026-42530) | none is allowed (`critical`) | |
//! | unknown and empty frames, priorities, unknown streams, capsules | such frames | `h3_idle_frames_max` |
//! | acknowledgements that the client does not read | bytes of the decoder stream that wait | `write_queue_bytes_max` |
//! | responses that the client does not read | bytes let through (`connection`) | `write_stall_ms`, `h2_stall_bytes_min` |
//! | bodies that the application does not read | they wait in QUIC's windows (`appetite`) | QUIC's |
//!
//! Tests: `src/tests/budgets.rs`.

use citius_http::{Fault, Limits, Millis};

/// Instructions of the encoder that a request pays for: each of its fields may be inserted.
const PAID_INSTRUCTIONS: u32 = 128;
/// Instructions that may be paid in advance.
const PAID_INSTRUCTIONS_MAX: u32 = 1024;

/// The counts of one connection.
#[derive(Debug)]
pub(crate) struct Budget {
    /// When counting began anew.
    since: Millis,
    n_requests: u32,
    n_resets: u32,
    n_idle_frames: u32,
    n_paid_instructions: u32,
}

impl Budget {
    pub(crate) fn new(now: Millis) -> Self {
        Self {
            since: now,
            n_requests: 0,
            n_resets: 0,
            n_idle_frames: 0,
            n_paid_instructions: PAID_INSTRUCTIONS_MAX,
        }
    }

    /// A request has ended in a reset that is the client's doing. A proxy's connection carries the requests of many users:
    /// what counts beyond the limit is whether most of them end so.
    pub(crate) fn reset(&mut self, now: Millis, limits: &Limits) -> Result<(), Fault> {
        self.refill(now, limits);
        self.n_resets = self.n_resets.saturating_add(1);
        let most = limits.h3_resets_max.max(self.n_requests / 2);
        within(self.n_resets, most, Fault::ExcessiveResets)
    }

    /// Something has come that brings nothing on.
    pub(crate) fn idle_frame(&mut self, now: Millis, limits: &Limits) -> Result<(), Fault> {
        self.idle_frames(1, now, limits)
    }

    /// So many instructions of the encoder have come.
    pub(crate) fn instructions(
        &mut self,
        n: u32,
        now: Millis,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let n_unpaid = n.saturating_sub(self.n_paid_instructions);
        self.n_paid_instructions = self.n_paid_instructions.saturating_sub(n);
        if n_unpaid == 0 {
            return Ok(());
        }
        self.idle_frames(n_unpaid, now, limits)
    }

    /// A request has come that is answered.
    #[inline]
    pub(crate) fn request(&mut self) {
        self.n_requests = self.n_requests.saturating_add(1);
        self.n_paid_instructions = self
            .n_paid_instructions
            .saturating_add(PAID_INSTRUCTIONS)
            .min(PAID_INSTRUCTIONS_MAX);
    }

    /// So much has come that brings nothing on.
    pub(crate) fn idle_frames(
        &mut self,
        n: u32,
        now: Millis,
        limits: &Limits,
    ) -> Result<(), Fault> {
        self.refill(now, limits);
        self.n_idle_frames = self.n_idle_frames.saturating_add(n);
        within(
            self.n_idle_frames,
            limits.h3_idle_frames_max,
            Fault::ExcessiveLoad,
        )
    }

    fn refill(&mut self, now: Millis, limits: &Limits) {
        let span_ms = limits.h3_budget_ms;
        if span_ms > 0 && now.saturating_sub(self.since) >= span_ms {
            self.since = now;
            self.n_requests = 0;
            self.n_resets = 0;
            self.n_idle_frames = 0;
        }
    }
}

fn within(count: u32, most: u32, fault: Fault) -> Result<(), Fault> {
    if count > most { Err(fault) } else { Ok(()) }
}
