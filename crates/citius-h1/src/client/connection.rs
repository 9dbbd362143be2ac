//! One connection to a server: a request at a time, and its response.

use citius_http::{Fields, Version};

use super::{Fault, Limits, ResponseHead};
use crate::chunked::{Chunked, Piece};
use crate::framing::Framing;

/// What a response is read as depends on what was asked (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Asked {
    /// Nothing out of the ordinary.
    #[default]
    Content,
    /// `HEAD`: the response has no content, whatever its head says.
    Head,
    /// `CONNECT`: a 2xx makes a tunnel of the connection.
    Connect,
    /// A request with `connection: upgrade`: a 101 makes a tunnel of the connection.
    Upgrade,
}

/// What was understood. For each request: any number of `Interim`, one `Head`, any number of `Data`, one `End`; a `Tunnel` in
/// place of all of that but `Interim`.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'i> {
    /// A response that another one follows (1xx).
    Interim(ResponseHead),
    /// The head of the response.
    Head(ResponseHead),
    /// A piece of the content, without transfer coding; never empty.
    Data(&'i [u8]),
    /// The response is complete; its trailer section.
    End(Fields),
    /// The server has granted another protocol, to which all further bytes belong.
    Tunnel(ResponseHead),
}

/// One connection to a server.
///
/// ```text
///          begin()            1xx, at most interim_max
/// Idle ─────────────► Head ◄──────────┐
///  ▲                   │ └────────────┘
///  │                   ├─ 101, 2xx to CONNECT ────────────────► Tunnel
///  │                   └─► Exact | Chunked | UntilClose ─► end
///  └── the response lets the connection live on ─────────────┤
///                                                            └► Over
/// ```
#[derive(Debug)]
pub struct Connection {
    reading: Reading,
    asked: Asked,
    /// Bytes of an incomplete head that were searched for its end.
    searched: u32,
    interims: u32,
    /// The server lets the connection live on after this response.
    lives_on: bool,
}

/// What the next byte is part of.
#[derive(Debug)]
enum Reading {
    /// Nothing: no request was sent.
    Idle,
    /// The head of a response; whether a byte of it has come.
    Head {
        is_begun: bool,
    },
    /// Content of which so many bytes are to come.
    Exact(u64),
    Chunked(Chunked),
    /// Content that ends with the connection, of which so many bytes have come.
    UntilClose(u64),
    /// Another protocol.
    Tunnel,
    /// Nothing: no further byte is read.
    Over,
    Broken(Fault),
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            reading: Reading::Idle,
            asked: Asked::Content,
            searched: 0,
            interims: 0,
            lives_on: false,
        }
    }
}

impl Connection {
    /// A request is sent, or about to be. `false`: the connection takes none, now or any more; nothing is done.
    pub fn begin(&mut self, asked: Asked) -> bool {
        if !self.is_idle() {
            return false;
        }
        *self = Self {
            reading: Reading::Head { is_begun: false },
            asked,
            ..Self::default()
        };
        true
    }

    /// Whether the next request may be sent.
    #[inline]
    pub fn is_idle(&self) -> bool {
        matches!(self.reading, Reading::Idle)
    }

    /// Whether no byte has come of the response to the last request, also if the server has closed since: one that may be
    /// repeated can be sent on another connection.
    #[inline]
    pub fn is_untouched(&self) -> bool {
        matches!(
            self.reading,
            Reading::Head { is_begun: false } | Reading::Broken(Fault::ClosedBeforeResponse)
        )
    }

    /// Takes as much of `input` as it can (advances the slice) and returns the next event; call until `None`. What is left must
    /// be offered again, longer. In a tunnel nothing is taken.
    ///
    /// # Errors
    /// The rule that the server has broken, again with each further call: close the connection.
    pub fn receive<'i>(
        &mut self,
        limits: &Limits,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'i>>, Fault> {
        let result = self.next_event(limits, input);
        if let Err(fault) = result {
            self.reading = Reading::Broken(fault);
        }
        result
    }

    /// The server sends no more. Offer all input to `receive` first.
    ///
    /// # Errors
    /// The response is not complete.
    pub fn receive_eof(&mut self) -> Result<Option<Event<'static>>, Fault> {
        let fault = match self.reading {
            Reading::UntilClose(_) => {
                self.reading = Reading::Over;
                return Ok(Some(Event::End(Fields::EMPTY)));
            }
            Reading::Idle | Reading::Tunnel | Reading::Over => {
                self.reading = Reading::Over;
                return Ok(None);
            }
            Reading::Head { is_begun: false } => Fault::ClosedBeforeResponse,
            Reading::Head { is_begun: true } => Fault::HeadTruncated,
            Reading::Exact(_) | Reading::Chunked(_) => Fault::BodyTruncated,
            Reading::Broken(fault) => fault,
        };
        self.reading = Reading::Broken(fault);
        Err(fault)
    }

    #[inline]
    fn next_event<'i>(
        &mut self,
        limits: &Limits,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'i>>, Fault> {
        match &mut self.reading {
            Reading::Head { is_begun } => {
                if input.is_empty() {
                    return Ok(None);
                }
                *is_begun = true;
                match ResponseHead::take(input, &mut self.searched, limits)? {
                    Some((head, framing)) => self.take_response(head, &framing, limits).map(Some),
                    None => Ok(None),
                }
            }
            Reading::Exact(0) => Ok(Some(self.end(Fields::EMPTY))),
            Reading::Exact(left) => {
                let most = *left;
                Ok(take(input, most, |taken| {
                    *left = most.saturating_sub(taken);
                }))
            }
            Reading::Chunked(chunked) => match chunked.decode(input, u64::MAX, &limits.into())? {
                Piece::Data(data) => Ok(Some(Event::Data(data))),
                Piece::End(trailers) => Ok(Some(self.end(trailers))),
                Piece::Starved | Piece::NoCredit => Ok(None),
            },
            Reading::UntilClose(read) => {
                let room = limits.body_bytes_max.saturating_sub(*read);
                if room == 0 && !input.is_empty() {
                    return Err(Fault::BodyTooLong);
                }
                Ok(take(input, room, |taken| {
                    *read = read.saturating_add(taken);
                }))
            }
            Reading::Idle if input.is_empty() => Ok(None),
            Reading::Idle => Err(Fault::Unasked),
            Reading::Tunnel | Reading::Over => Ok(None),
            Reading::Broken(fault) => Err(*fault),
        }
    }

    /// Decides how the content is read (RFC 9112 §6.3).
    fn take_response(
        &mut self,
        head: ResponseHead,
        framing: &Framing,
        limits: &Limits,
    ) -> Result<Event<'static>, Fault> {
        let http11 = head.version == Version::Http11;
        let makes_tunnel = match self.asked {
            Asked::Connect => (200..300).contains(&head.status),
            Asked::Upgrade => head.status == 101,
            Asked::Content | Asked::Head => false,
        };
        if makes_tunnel && (http11 || head.status != 101) {
            // A length or a transfer coding of a 2xx to CONNECT means nothing (RFC 9110 §9.3.6).
            self.reading = Reading::Tunnel;
            return Ok(Event::Tunnel(head));
        }
        let is_chunked = framing.is_chunked(http11)?;
        let has_no_content = head.status < 200 || head.status == 204;
        if has_no_content && (is_chunked || framing.content_length.is_some_and(|length| length > 0))
        {
            return Err(Fault::ContentForbidden);
        }
        if head.status < 200 {
            return self.take_interim(head, http11, limits);
        }
        self.lives_on = framing.lets_live_on(http11);
        let is_empty = has_no_content || head.status == 304 || self.asked == Asked::Head;
        self.reading = match framing.content_length {
            _ if is_empty => Reading::Exact(0),
            _ if is_chunked => {
                let mut chunked = Chunked::new();
                chunked.bytes_max = limits.body_bytes_max;
                Reading::Chunked(chunked)
            }
            Some(length) if length > limits.body_bytes_max => return Err(Fault::BodyTooLong),
            Some(length) => Reading::Exact(length),
            None => Reading::UntilClose(0),
        };
        Ok(Event::Head(head))
    }

    fn take_interim(
        &mut self,
        head: ResponseHead,
        http11: bool,
        limits: &Limits,
    ) -> Result<Event<'static>, Fault> {
        if !http11 {
            return Err(Fault::InterimInHttp10);
        }
        if head.status == 101 {
            return Err(Fault::SwitchUnasked);
        }
        self.interims = self.interims.saturating_add(1);
        if self.interims > limits.interim_max {
            return Err(Fault::TooManyInterim);
        }
        Ok(Event::Interim(head))
    }

    fn end(&mut self, trailers: Fields) -> Event<'static> {
        self.reading = if self.lives_on {
            Reading::Idle
        } else {
            Reading::Over
        };
        Event::End(trailers)
    }
}

/// Takes at most `most` bytes of content off the front of `input`.
fn take<'i>(input: &mut &'i [u8], most: u64, note: impl FnOnce(u64)) -> Option<Event<'i>> {
    let size = usize::try_from(most).unwrap_or(usize::MAX);
    let (data, rest) = input.split_at_checked(size).unwrap_or((*input, &[]));
    *input = rest;
    note(data.len() as u64);
    (!data.is_empty()).then_some(Event::Data(data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_a_byte_of_its_response_may_be_repeated() {
        let mut connection = Connection::default();
        assert!(!connection.is_untouched());
        assert!(connection.begin(Asked::Content));
        assert!(connection.is_untouched());
        assert_eq!(connection.receive_eof(), Err(Fault::ClosedBeforeResponse));
        assert!(connection.is_untouched());
    }

    #[test]
    fn a_byte_of_the_response_says_that_the_request_was_read() {
        for begun in [&b"H"[..], b"HTTP/1.1 100 x\r\n\r\n", b"SSH"] {
            let mut connection = Connection::default();
            assert!(connection.begin(Asked::Content));
            let mut input = begun;
            while let Ok(Some(_)) = connection.receive(&Limits::DEFAULT, &mut input) {}
            assert!(!connection.is_untouched());
            assert!(connection.receive_eof().is_err());
            assert!(!connection.is_untouched());
        }
    }
}
