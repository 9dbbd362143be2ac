//! What a peer may cost without getting on, in one place.
//!
//! | abuse | what is counted | limit |
//! |---|---|---|
//! | rapid reset (CVE-2023-44487) | streams the client resets before their responses are sent, beyond half of its requests | `h2_resets_max` |
//! | `MadeYouReset` (CVE-2025-8671) | streams reset for the client's mistake, or refused | `h2_resets_max` |
//! | CONTINUATION flood (CVE-2024-27316) | continuations of one head, of a frame's size each | `h2_continuations_max` |
//! | HPACK bomb | what a head is once decoded; beyond, nothing of it is kept | `head_bytes_max`, `fields_max` |
//! | SETTINGS, PING, PRIORITY, empty frames (CVE-2019-9512, -9513, -9515, -9518) | such frames | `h2_idle_frames_max` |
//! | small windows (CVE-2019-9511) | window updates that let less than 512 bytes through and bring no request | `h2_idle_frames_max` |
//! | resets of streams that are over | those that no request has paid for | `h2_idle_frames_max` |
//! | windows that stay closed (CVE-2019-9517) | bytes let through (`stream`) | `write_stall_ms`, `h2_stall_bytes_min` |
//! | streams without end | open streams (`receive`) | `h2_streams_max` |
//! | bodies that the application does not read | bytes that wait (`receive`) | `h2_window_bytes` |
//!
//! Tests: `src/tests/budgets.rs`.

use citius_http::{Fault, Limits, Millis};

/// Bytes sent that pay for one window update. Frames are rarely below 1 KiB (`write`), and a client that opens
/// the windows of stream and connection for each of them does nothing wrong.
const PAID_BYTES: u64 = 512;
/// Bytes sent that are remembered to pay; more than a window's worth is never under way for long.
const PAID_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// What a request is worth in such bytes: its response may be short, and its client open both windows for it and then reset
/// the stream, as curl 7.88 does behind every response.
const REQUEST_BYTES: u64 = 3 * PAID_BYTES;

/// The counts of one connection.
#[derive(Debug)]
pub(crate) struct Budget {
    /// When counting began anew.
    since: Millis,
    n_requests: u32,
    n_resets: u32,
    n_idle_frames: u32,
    /// Bytes of data that were sent and have paid for no window update yet.
    sent_bytes: u64,
}

impl Budget {
    pub(crate) fn new(now: Millis) -> Self {
        Self {
            since: now,
            n_requests: 0,
            n_resets: 0,
            n_idle_frames: 0,
            sent_bytes: 0,
        }
    }

    /// A stream has ended in a reset that is the client's doing.
    ///
    /// One connection may carry the requests of many users, of whom some leave: a proxy's. So what counts beyond the
    /// limit is whether most requests end in a reset.
    pub(crate) fn reset(&mut self, now: Millis, limits: &Limits) -> Result<(), Fault> {
        self.refill(now, limits);
        self.n_resets = self.n_resets.saturating_add(1);
        let most = limits.h2_resets_max.max(self.n_requests / 2);
        within(self.n_resets, most, Fault::ExcessiveResets)
    }

    /// A frame has come that brings nothing on.
    pub(crate) fn idle_frame(&mut self, now: Millis, limits: &Limits) -> Result<(), Fault> {
        self.refill(now, limits);
        self.n_idle_frames = self.n_idle_frames.saturating_add(1);
        within(
            self.n_idle_frames,
            limits.h2_idle_frames_max,
            Fault::ExcessiveLoad,
        )
    }

    /// A window was opened, or a stream reset whose response has been sent: it comes for what the client has received.
    pub(crate) fn receipt(&mut self, now: Millis, limits: &Limits) -> Result<(), Fault> {
        match self.sent_bytes.checked_sub(PAID_BYTES) {
            Some(rest) => {
                self.sent_bytes = rest;
                Ok(())
            }
            None => self.idle_frame(now, limits),
        }
    }

    /// So many bytes of data were sent.
    #[inline]
    pub(crate) fn sent(&mut self, n_bytes: usize) {
        self.sent_bytes = self
            .sent_bytes
            .saturating_add(n_bytes as u64)
            .min(PAID_BYTES_MAX);
    }

    /// A request has come that is answered.
    #[inline]
    pub(crate) fn request(&mut self) {
        self.n_requests = self.n_requests.saturating_add(1);
        self.sent_bytes = self
            .sent_bytes
            .saturating_add(REQUEST_BYTES)
            .min(PAID_BYTES_MAX);
    }

    fn refill(&mut self, now: Millis, limits: &Limits) {
        let span_ms = limits.h2_budget_ms;
        if span_ms > 0 && now.saturating_sub(self.since) >= span_ms {
            self.since = now;
            self.n_requests = 0;
            self.n_resets = 0;
            self.n_idle_frames = 0;
        }
    }
}

/// The continuations of one head.
pub(crate) fn continuations(n_frames: u32, limits: &Limits) -> Result<(), Fault> {
    within(n_frames, limits.h2_continuations_max, Fault::ExcessiveLoad)
}

fn within(count: u32, most: u32, fault: Fault) -> Result<(), Fault> {
    if count > most { Err(fault) } else { Ok(()) }
}
