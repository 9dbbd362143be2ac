//! One connection's half of HTTP/1.1: one exchange at a time.

use citius_h1::client::{
    Asked, Connection, Content, Event, Fault, Limits, ResponseHead, encode_chunk, encode_last_chunk,
};
use citius_http::Fields;
use citius_reactor::{Inbox, coarse_ms};
use pyo3::prelude::*;

use super::exchange::{CONTINUE_MS, Exchange, Outcomes, PORTION_BYTES, trailers_of};
use crate::http::call::{Body, HttpCall};
use crate::http::errors::Failure;
use crate::http::head::{Head, Pairs};
use crate::http::origin::HttpOrigin;
use crate::http::request::{RequestParts, encode_h1};
use crate::http::upload::Part;

/// Content of a response whose call was given up is read up to this size, so that its connection can be used again.
pub(crate) const DROPPED_BYTES_MAX: u64 = 64 * 1024;

/// One connection's half of HTTP/1.1.
#[derive(Default)]
pub(crate) struct H1 {
    parser: Connection,
    asked: Asked,
    inbox: Inbox,
    pub(crate) exchange: Option<Exchange>,
    output: Vec<u8>,
    /// Bytes of it that the carrier has taken.
    n_taken: usize,
    /// Responses that were complete.
    served: u32,
    /// It has had a request, or was open without one.
    pub(crate) was_kept: bool,
}

impl H1 {
    pub(crate) fn is_idle(&self) -> bool {
        self.exchange.is_none()
    }

    /// Begins an exchange; whether its content waits for the server's word.
    ///
    /// # Errors
    /// The request cannot be sent as it is.
    pub(crate) fn begin(
        &mut self,
        py: Python<'_>,
        call: &Py<HttpCall>,
        origin: &HttpOrigin,
    ) -> PyResult<bool> {
        let it = call.get();
        let content = match &it.body {
            Body::Nothing => Content::Length(0),
            Body::Bytes(bytes) => Content::Length(bytes.as_bytes(py).len() as u64),
            Body::Upload(_) if it.upgrades() => Content::Length(0),
            Body::Upload(upload) => upload
                .get()
                .length
                .map_or(Content::Chunked, Content::Length),
        };
        let parts = RequestParts {
            asked: &it.asked,
            content,
            upgrades: it.upgrades(),
        };
        let (asked, expects) = encode_h1(py, &parts, origin, &mut self.output)?;
        let now = coarse_ms();
        let mut exchange = Exchange::new(call.clone_ref(py), now);
        exchange.is_reused = self.served > 0;
        exchange.was_kept = self.was_kept;
        self.asked = asked;
        if expects {
            exchange.continue_until_ms = Some(now + CONTINUE_MS);
        }
        match &it.body {
            Body::Nothing => {}
            Body::Bytes(bytes) if expects => exchange.held_body = Some(bytes.clone_ref(py)),
            Body::Bytes(bytes) => self.output.extend_from_slice(bytes.as_bytes(py)),
            Body::Upload(upload) => exchange.upload = Some(upload.clone_ref(py)),
        }
        self.exchange = Some(exchange);
        Ok(expects)
    }

    /// Takes back a request of which nothing has left.
    pub(crate) fn take_back(&mut self) -> Option<Exchange> {
        let unsent = self.exchange.take_if(|it| !it.is_taken);
        if unsent.is_some() {
            self.output.clear();
            self.was_kept = true;
        }
        unsent
    }

    /// Hands over what is to be sent; from then on the response is expected.
    pub(crate) fn take_output(&mut self, py: Python<'_>, take: impl FnOnce(&[u8])) {
        let now = coarse_ms();
        if let Some(exchange) = &mut self.exchange {
            if !exchange.is_taken {
                exchange.is_taken = self.parser.begin(self.asked);
            }
            // What goes into a tunnel is not part of the request.
            let awaits_tunnel = exchange.call.get().upgrades() && !exchange.is_tunnel;
            if exchange.continue_until_ms.is_none() && !awaits_tunnel {
                pull_upload(py, exchange, &mut self.output);
            }
            let is_last = self.output.len() - self.n_taken <= PORTION_BYTES;
            let is_whole = exchange.upload.is_none() || awaits_tunnel;
            exchange.is_sent = is_last && exchange.continue_until_ms.is_none() && is_whole;
            exchange.taken_ms = now;
        }
        let end = self.output.len().min(self.n_taken + PORTION_BYTES);
        take(&self.output[self.n_taken..end]);
        self.n_taken = end;
        if end == self.output.len() {
            self.output.clear();
            self.output.shrink_to(PORTION_BYTES);
            self.n_taken = 0;
        }
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.output.is_empty()
    }

    /// Whether the first of a request is the next thing to be sent. The server may have closed the connection before, also one
    /// that was just made, if this thread was late.
    pub(crate) fn looks_first(&self) -> bool {
        let exchange = self.exchange.as_ref();
        exchange.is_some_and(|it| !it.is_taken)
    }

    /// The server wants the content, or has not said so in time.
    pub(crate) fn send_held(&mut self, py: Python<'_>) -> bool {
        let Some(exchange) = &mut self.exchange else {
            return false;
        };
        if exchange.continue_until_ms.take().is_none() {
            return false;
        }
        if let Some(body) = exchange.held_body.take() {
            self.output.extend_from_slice(body.as_bytes(py));
        }
        true
    }

    /// Takes bytes that have come.
    pub(crate) fn receive(
        &mut self,
        py: Python<'_>,
        bytes: &[u8],
        limits: &Limits,
        out: &mut Outcomes,
    ) {
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.receive(bytes, |all| {
            let mut input = all;
            self.read(py, &mut input, limits, out);
            input.len()
        });
        self.inbox = inbox;
    }

    fn read(&mut self, py: Python<'_>, input: &mut &[u8], limits: &Limits, out: &mut Outcomes) {
        while out.ends.is_none() {
            match self.exchange.as_mut() {
                Some(exchange) if exchange.is_tunnel => {
                    exchange.heard_ms = coarse_ms();
                    if let Some(incoming) = &exchange.incoming
                        && !input.is_empty()
                    {
                        out.sleepers.extend(incoming.push(std::mem::take(input)));
                    }
                    return;
                }
                // What is dropped has one time for all of it.
                Some(exchange) if exchange.dropped_bytes_left.is_some() => {}
                Some(exchange) if exchange.is_taken => exchange.heard_ms = coarse_ms(),
                // Bytes that belong to no request would be taken for the response to the next one.
                _ if input.is_empty() => return,
                _ => {
                    out.is_free = false;
                    out.ends = Some(Failure::of_h1(Fault::Unasked, 0));
                    return;
                }
            }
            let own;
            let limits = match &self.exchange {
                Some(exchange) if exchange.call.get().is_streamed => {
                    own = Limits {
                        body_bytes_max: u64::MAX,
                        ..limits.clone()
                    };
                    &own
                }
                _ => limits,
            };
            match self.parser.receive(limits, input) {
                Ok(Some(event)) => self.take_event(py, event, out),
                Ok(None) => return,
                Err(fault) => out.ends = Some(Failure::of_h1(fault, limits.body_bytes_max)),
            }
        }
    }

    fn take_event(&mut self, py: Python<'_>, event: Event<'_>, out: &mut Outcomes) {
        match event {
            Event::Interim(head) => self.take_interim(py, &head, out),
            Event::Head(head) => self.take_head(py, head, out),
            Event::Data(data) => self.take_data(py, data, out),
            Event::End(trailers) => self.end(&trailers, out),
            Event::Tunnel(head) => self.take_tunnel(py, head, out),
        }
    }

    fn take_interim(&mut self, py: Python<'_>, head: &ResponseHead, out: &mut Outcomes) {
        if head.status == 100 {
            out.has_output |= self.send_held(py);
            return;
        }
        if let Some(exchange) = &mut self.exchange {
            let fields = head.fields();
            let fields = fields.map(|(name, value)| (name.to_vec(), value.to_vec()));
            exchange.inform(head.status, fields.collect(), out);
        }
    }

    fn take_head(&mut self, py: Python<'_>, head: ResponseHead, out: &mut Outcomes) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        let head = Head::H1(head);
        if exchange.dropped_bytes_left.is_some() || !exchange.call.get().is_streamed {
            exchange.head = Some(head);
            return;
        }
        exchange.stream(py, head, out);
    }

    fn take_tunnel(&mut self, py: Python<'_>, head: ResponseHead, out: &mut Outcomes) {
        if let Some(exchange) = &mut self.exchange {
            exchange.is_tunnel = true;
            exchange.stream(py, Head::H1(head), out);
        }
    }

    fn take_data(&mut self, py: Python<'_>, data: &[u8], out: &mut Outcomes) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        if let Some(left) = &mut exchange.dropped_bytes_left {
            let size = data.len() as u64;
            if size > *left {
                out.ends = Some(Failure::new("ReadError", "the response is not read"));
            }
            *left = left.saturating_sub(size);
        } else if let Some(incoming) = &exchange.incoming {
            out.sleepers.extend(incoming.push(data));
        } else {
            let length = exchange.head.as_ref().and_then(Head::content_length);
            exchange.body.push(py, data, length);
        }
    }

    fn end(&mut self, trailers: &Fields, out: &mut Outcomes) {
        let Some(mut exchange) = self.exchange.take() else {
            return;
        };
        self.served = self.served.saturating_add(1);
        self.was_kept = true;
        let trailers = trailers
            .iter()
            .map(|(name, value)| (name.to_vec(), value.to_vec()));
        let trailers: Pairs = trailers.collect();
        // A server that has answered before it had the whole request may take the rest, or close.
        let is_sent = exchange.is_sent && self.output.is_empty();
        out.uploads.extend(exchange.upload.take());
        if self.parser.is_idle() && is_sent {
            out.is_free = true;
        } else {
            out.ends = Some(Failure::new(
                "ReadError",
                "the server has closed the connection",
            ));
        }
        exchange.complete(trailers, out);
    }

    /// The server sends no more: what was read until the end of the connection is complete.
    pub(crate) fn receive_eof(&mut self, is_cut: bool, out: &mut Outcomes) -> Result<(), Fault> {
        if self.exchange.as_ref().is_some_and(|it| !it.is_taken) {
            return Ok(());
        }
        if let Some(exchange) = self.exchange.as_ref().filter(|it| it.is_tunnel)
            && let Some(incoming) = &exchange.incoming
        {
            out.sleepers.extend(incoming.end(Pairs::new()));
            return Ok(());
        }
        if let Some(Event::End(trailers)) = self.parser.receive_eof()? {
            if is_cut {
                return Err(Fault::BodyTruncated);
            }
            self.end(&trailers, out);
        }
        Ok(())
    }

    /// The server sends no more in a tunnel, and may still be sent to: how long that may be silent. `None`: there is no tunnel.
    pub(crate) fn end_tunnel_output(&mut self, out: &mut Outcomes) -> Option<u64> {
        let exchange = self.exchange.as_mut().filter(|it| it.is_tunnel)?;
        let incoming = exchange.incoming.as_ref()?;
        if !std::mem::replace(&mut exchange.has_heard_all, true) {
            out.sleepers.extend(incoming.end_output());
        }
        Some(exchange.ending_ms())
    }

    /// Whether all that goes into a tunnel was handed over, and nothing will follow.
    pub(crate) fn has_sent_all(&self) -> bool {
        let exchange = self.exchange.as_ref();
        self.output.is_empty() && exchange.is_some_and(|it| it.has_sent_all)
    }

    /// Whether no byte of the response has come.
    pub(crate) fn is_untouched(&self) -> bool {
        self.parser.is_untouched()
    }

    /// Drops what comes for a call that was given up; `false`: the connection is to be closed.
    pub(crate) fn drop_response(&mut self) -> bool {
        let Some(exchange) = &mut self.exchange else {
            return true;
        };
        let length = exchange.head.as_ref().and_then(Head::content_length);
        let is_short = length.is_some_and(|length| length <= DROPPED_BYTES_MAX);
        if exchange.is_sent && exchange.incoming.is_none() && is_short {
            exchange.dropped_bytes_left = Some(DROPPED_BYTES_MAX);
            exchange.heard_ms = coarse_ms();
        }
        exchange.dropped_bytes_left.is_some()
    }
}

/// Moves what an upload has to the output.
pub(crate) fn pull_upload(py: Python<'_>, exchange: &mut Exchange, output: &mut Vec<u8>) {
    let Some(upload) = &exchange.upload else {
        return;
    };
    let it = upload.get();
    let is_chunked = it.length.is_none() && !exchange.is_tunnel;
    let part = it.take(|data| {
        if is_chunked {
            encode_chunk(data, output);
        } else {
            output.extend_from_slice(data);
        }
    });
    if let Part::Last(trailers) = part {
        if is_chunked {
            let trailers = trailers_of(py, exchange.call.get(), trailers);
            let fields = trailers.iter();
            let fields = fields.map(|(name, value)| (name.as_slice(), value.as_slice()));
            // They were checked when they were given.
            let _ = encode_last_chunk(fields, output);
        }
        exchange.has_sent_all = exchange.is_tunnel;
        exchange.upload = None;
    }
}
