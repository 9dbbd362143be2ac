//! The limit of a request body's length, and the log message about a longer body.
//!
//! In: limits of the server and of the route. Out: a limit for the protocol, which counts. A body that is held until it is
//! complete has a limit; a streamed one only if an option sets it. Tests: `tests/abuse/`, `tests/gateway/`.

use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{LEVEL_WARNING, Subject};
use citius_http::{Head, Limits};
use citius_reactor::Reply;
use pyo3::Python;

/// The limit of one body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit {
    bytes_max: u64,
    /// What sets it.
    option: &'static str,
}

/// What became of a request with a longer body, where its response had not begun, and where it had.
pub(crate) const REFUSED: &str = "refused with 413";
pub(crate) const UNREAD: &str = "no more of it is read";
pub(crate) const CUT: &str = "cut off";

const OF_ROUTE: &str = "body_bytes_max= of its route";

impl BodyLimit {
    /// Of a body that a native handler gets whole.
    pub(crate) fn held(limits: &Limits, of_route: Option<u64>) -> Self {
        match of_route {
            Some(bytes_max) => Self {
                bytes_max,
                option: OF_ROUTE,
            },
            None => Self {
                bytes_max: limits.body_bytes_max,
                option: "--body-bytes-max, or body_bytes_max= of its route",
            },
        }
    }

    /// Lowers the limit to that of a form that is held as a whole.
    pub(crate) fn at_most(self, text_bytes_max: u64) -> Self {
        if self.bytes_max <= text_bytes_max {
            return self;
        }
        Self {
            bytes_max: text_bytes_max,
            option: "text_bytes_max of its route's FormLimits, which is --body-bytes-max without a number",
        }
    }

    /// Of a body that the application reads as it comes.
    pub(crate) fn streamed(limits: &Limits, of_route: Option<u64>) -> Self {
        match of_route {
            Some(bytes_max) => Self {
                bytes_max,
                option: OF_ROUTE,
            },
            None => Self {
                bytes_max: limits.streamed_body_max(),
                option: "--body-streamed-bytes-max",
            },
        }
    }

    /// Of a body that waits in a file until it is complete.
    pub(crate) fn spooled(limits: &Limits) -> Self {
        let streamed = Self::streamed(limits, None);
        if streamed.bytes_max <= limits.body_spooled_bytes_max {
            return streamed;
        }
        Self {
            bytes_max: limits.body_spooled_bytes_max,
            option: "--body-spooled-bytes-max, which --threads does without",
        }
    }

    /// Holds the request of `reply` to it; `true`: its body is announced longer, and it is answered with 413.
    #[must_use]
    pub(crate) fn enforce(
        self,
        py: Python<'_>,
        handle: &ReactorHandle,
        head: &Head,
        route: Option<&str>,
        reply: &mut Reply<'_>,
    ) -> bool {
        let is_refused = self.bytes_max < u64::MAX && reply.limit_body(self.bytes_max);
        if is_refused {
            self.report(
                py,
                handle,
                &Subject::new(handle.names(), head, route),
                REFUSED,
            );
        }
        is_refused
    }

    /// Tells the log that a body was longer.
    #[cold]
    pub(crate) fn report(
        self,
        py: Python<'_>,
        handle: &ReactorHandle,
        subject: &Subject,
        what: &str,
    ) {
        let message = format!(
            ": {what}, for its body is longer than {} bytes; the limit is set by {}",
            self.bytes_max, self.option
        );
        subject.log(py, handle, LEVEL_WARNING, &message);
    }
}
