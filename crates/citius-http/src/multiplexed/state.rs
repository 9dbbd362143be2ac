//! The state of a stream (RFC 9113 §5.1), and which frames and actions each state allows.
//!
//! In: that `END_STREAM` was received or sent, that HEADERS are sent, and the application's content and its end. Out: the
//! next state, or the [`Fault`] of the side that broke the order. Nothing is written here, and no window is known.
//! Tests: here, and `tests/exchange.rs` of the protocols.

use crate::{Declared, Fault};

/// The state of a stream.
///
/// ```text
///                     HEADERS             HEADERS with `END_STREAM`
///                   ┌──────────── (idle) ────────────┐
///                   ▼                                ▼
///        ┌──────── Open ── END_STREAM received ──► HalfClosedRemote ───┐
///        │                                           ▲                 │
///   END_STREAM sent                                  │ HEADERS with    │ END_STREAM sent
///        ▼                                           │ END_STREAM      ▼
///   HalfClosedLocal ───── END_STREAM received ──────────────────────► Closed
/// ```
///
/// A stream that is idle has no entry in the table. One that is reset, by either side, is removed from it, as is one that
/// is `Closed` and whose response is complete. There is no state "reserved": nothing is pushed.
///
/// A stream whose response is complete before its request stays `HalfClosedLocal` while the rest of the request is
/// dropped, up to `h2_discard_bytes_max` and while it comes; then it is reset (§8.1). Some clients lose a response that is followed
/// by a reset at once.
///
/// While the local side may send, a [`Sending`] says what of the response is due. Where `END_STREAM` went out with the
/// HEADERS of a response whose content the application streams (to a HEAD request, or a 204), the local side is closed
/// although the application goes on; a [`Response`] says whether it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Both sides may send.
    Open(Sending),
    /// We have sent `END_STREAM`; the client may send.
    HalfClosedLocal(Response),
    /// The client has sent `END_STREAM`; we may send.
    HalfClosedRemote(Sending),
    /// Both have sent `END_STREAM`.
    Closed(Response),
}

/// What the local side has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// The HEADERS of the final response.
    Headers,
    /// Content, as the application gives it.
    Content(Declared),
    /// What the application gave and no window has let through yet, then `END_STREAM`.
    Rest,
}

/// How far the application is, where the local side is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// It may send content, which is dropped.
    Discarded,
    /// It has sent everything.
    Complete,
}

/// What follows the HEADERS of a final response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// Nothing: `END_STREAM` is set, and the application has sent everything.
    Nothing,
    /// Nothing: `END_STREAM` is set, and what the application sends is dropped.
    Dropped,
    /// All of the content, at once.
    Whole,
    /// Content, as the application gives it.
    Content(Declared),
}

impl State {
    /// A stream begins by HEADERS; `ended` if they have `END_STREAM`.
    #[inline]
    pub const fn new(ended: bool) -> Self {
        if ended {
            Self::HalfClosedRemote(Sending::Headers)
        } else {
            Self::Open(Sending::Headers)
        }
    }

    /// Whether the client has sent `END_STREAM`.
    #[inline]
    pub const fn is_remote_closed(self) -> bool {
        matches!(self, Self::HalfClosedRemote(_) | Self::Closed(_))
    }

    /// Whether we have sent `END_STREAM`.
    #[inline]
    pub const fn is_local_closed(self) -> bool {
        matches!(self, Self::HalfClosedLocal(_) | Self::Closed(_))
    }

    /// Whether the HEADERS of the final response are not sent yet.
    #[inline]
    pub const fn awaits_headers(self) -> bool {
        matches!(
            self,
            Self::Open(Sending::Headers) | Self::HalfClosedRemote(Sending::Headers)
        )
    }

    /// Whether the application has sent everything; it may have to wait for windows.
    #[inline]
    pub const fn is_response_complete(self) -> bool {
        matches!(
            self,
            Self::Open(Sending::Rest)
                | Self::HalfClosedRemote(Sending::Rest)
                | Self::HalfClosedLocal(Response::Complete)
                | Self::Closed(Response::Complete)
        )
    }

    /// Whether the response has left, and the rest of the request is read away.
    #[inline]
    pub const fn is_discarding(self) -> bool {
        matches!(self, Self::HalfClosedLocal(Response::Complete))
    }

    /// DATA or trailers were received.
    ///
    /// # Errors
    /// [`Fault::StreamClosed`] behind `END_STREAM`.
    #[inline]
    pub const fn receive(self) -> Result<(), Fault> {
        if self.is_remote_closed() {
            return Err(Fault::StreamClosed);
        }
        Ok(())
    }

    /// `END_STREAM` was received.
    ///
    /// # Errors
    /// [`Fault::StreamClosed`] for a second one.
    pub fn receive_end(&mut self) -> Result<(), Fault> {
        *self = match *self {
            Self::Open(sending) => Self::HalfClosedRemote(sending),
            Self::HalfClosedLocal(response) => Self::Closed(response),
            Self::HalfClosedRemote(_) | Self::Closed(_) => return Err(Fault::StreamClosed),
        };
        Ok(())
    }

    /// The HEADERS of the final response are sent.
    ///
    /// # Errors
    /// [`Fault::ResponseOrder`] for a second final response.
    #[inline]
    pub fn send_headers(&mut self, following: Following) -> Result<(), Fault> {
        let is_remote_closed = match *self {
            Self::Open(Sending::Headers) => false,
            Self::HalfClosedRemote(Sending::Headers) => true,
            _ => return Err(Fault::ResponseOrder),
        };
        let may_send = |sending| {
            if is_remote_closed {
                Self::HalfClosedRemote(sending)
            } else {
                Self::Open(sending)
            }
        };
        let is_closed = |response| {
            if is_remote_closed {
                Self::Closed(response)
            } else {
                Self::HalfClosedLocal(response)
            }
        };
        *self = match following {
            Following::Nothing => is_closed(Response::Complete),
            Following::Dropped => is_closed(Response::Discarded),
            Following::Whole => may_send(Sending::Rest),
            Following::Content(declared) => may_send(Sending::Content(declared)),
        };
        Ok(())
    }

    /// The application sends `n_bytes` of content; `false`: they are dropped.
    ///
    /// # Errors
    /// [`Fault::ResponseOrder`] before HEADERS or behind the end, [`Fault::ResponseLength`] for more than declared.
    pub fn send_data(&mut self, n_bytes: u64) -> Result<bool, Fault> {
        match self {
            Self::Open(Sending::Content(declared))
            | Self::HalfClosedRemote(Sending::Content(declared)) => {
                declared.count(n_bytes)?;
                Ok(true)
            }
            Self::HalfClosedLocal(Response::Discarded) | Self::Closed(Response::Discarded) => {
                Ok(false)
            }
            _ => Err(Fault::ResponseOrder),
        }
    }

    /// The application has sent everything; `true`: `END_STREAM` is due.
    ///
    /// # Errors
    /// [`Fault::ResponseOrder`] before HEADERS or for a second time, [`Fault::ResponseLength`] for less than declared.
    pub fn complete(&mut self) -> Result<bool, Fault> {
        let (next, is_due) = match *self {
            Self::Open(Sending::Content(declared)) => {
                declared.complete()?;
                (Self::Open(Sending::Rest), true)
            }
            Self::HalfClosedRemote(Sending::Content(declared)) => {
                declared.complete()?;
                (Self::HalfClosedRemote(Sending::Rest), true)
            }
            Self::HalfClosedLocal(Response::Discarded) => {
                (Self::HalfClosedLocal(Response::Complete), false)
            }
            Self::Closed(Response::Discarded) => (Self::Closed(Response::Complete), false),
            _ => return Err(Fault::ResponseOrder),
        };
        *self = next;
        Ok(is_due)
    }

    /// `END_STREAM` is sent in a tunnel, whose other direction goes on until the application has sent everything.
    ///
    /// # Errors
    /// [`Fault::ResponseOrder`] if the application may not send content now.
    pub fn end_output(&mut self) -> Result<(), Fault> {
        *self = match *self {
            Self::Open(Sending::Content(_)) => Self::HalfClosedLocal(Response::Discarded),
            Self::HalfClosedRemote(Sending::Content(_)) => Self::Closed(Response::Discarded),
            _ => return Err(Fault::ResponseOrder),
        };
        Ok(())
    }

    /// `END_STREAM` was sent behind content.
    ///
    /// # Errors
    /// [`Fault::ResponseOrder`] if the application has not sent everything: the caller's mistake.
    #[inline]
    pub fn send_end(&mut self) -> Result<(), Fault> {
        *self = match *self {
            Self::Open(Sending::Rest) => Self::HalfClosedLocal(Response::Complete),
            Self::HalfClosedRemote(Sending::Rest) => Self::Closed(Response::Complete),
            _ => return Err(Fault::ResponseOrder),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DECLARED: Declared = Declared::new(Some(3));

    #[test]
    fn a_stream_goes_through_its_states() {
        let mut state = State::new(false);
        assert_eq!(state.receive(), Ok(()));
        assert_eq!(state.send_headers(Following::Content(DECLARED)), Ok(()));
        assert_eq!(state.send_data(3), Ok(true));
        assert_eq!(state.receive_end(), Ok(()));
        assert!(state.is_remote_closed() && !state.is_local_closed());
        assert_eq!(state.complete(), Ok(true));
        assert!(state.is_response_complete() && !state.is_local_closed());
        assert_eq!(state.send_end(), Ok(()));
        assert_eq!(state, State::Closed(Response::Complete));
    }

    #[test]
    fn a_response_without_content_closes_with_its_headers() {
        let mut state = State::new(false);
        assert_eq!(state.send_headers(Following::Dropped), Ok(()));
        assert_eq!(state, State::HalfClosedLocal(Response::Discarded));
        assert_eq!(state.send_data(9), Ok(false));
        assert_eq!(state.complete(), Ok(false));
        assert_eq!(state.receive_end(), Ok(()));
        assert_eq!(state, State::Closed(Response::Complete));
    }

    #[test]
    fn a_tunnel_ends_on_each_side_by_itself() {
        let mut state = State::new(false);
        assert_eq!(
            state.send_headers(Following::Content(Declared::new(None))),
            Ok(())
        );
        assert_eq!(state.end_output(), Ok(()));
        assert!(state.is_local_closed() && !state.is_response_complete());
        assert_eq!(state.receive(), Ok(()));
        assert_eq!(state.receive_end(), Ok(()));
        assert_eq!(state.complete(), Ok(false));
        assert_eq!(state, State::Closed(Response::Complete));
    }

    #[test]
    fn transitions_that_are_not_in_the_diagram_are_errors() {
        let sending = [Sending::Headers, Sending::Content(DECLARED), Sending::Rest];
        let responses = [Response::Discarded, Response::Complete];
        let all = (sending.map(State::Open).into_iter())
            .chain(sending.map(State::HalfClosedRemote))
            .chain(responses.map(State::HalfClosedLocal))
            .chain(responses.map(State::Closed));
        for state in all {
            let after = |act: fn(&mut State) -> bool| {
                let mut next = state;
                let done = act(&mut next);
                assert!(
                    done || next == state,
                    "a refused transition changes nothing"
                );
                done
            };
            let is_open = !state.is_remote_closed();
            assert_eq!(state.receive().is_ok(), is_open);
            assert_eq!(after(|s| s.receive_end().is_ok()), is_open);
            let begins = after(|s| s.send_headers(Following::Whole).is_ok());
            assert_eq!(begins, state.awaits_headers());
            let continues = !begins && !state.is_response_complete();
            assert_eq!(after(|s| s.send_data(3).is_ok()), continues);
            assert!(!after(|s| s.complete().is_ok()) || continues);
            let is_content = continues && !state.is_local_closed();
            assert_eq!(after(|s| s.end_output().is_ok()), is_content);
            let is_rest = state.is_response_complete() && !state.is_local_closed();
            assert_eq!(after(|s| s.send_end().is_ok()), is_rest);
        }
    }
}
