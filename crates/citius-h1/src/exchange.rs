//! One request and its response, and the queue of those whose responses are not complete.
//!
//! An [`Exchange`] knows how far its response has come and what may follow; it doesn't know where its bytes
//! go. The [`Queue`] keeps exchanges in the order of their requests: the oldest writes to the
//! connection, the others to an [`Output`] of their own until their turn has come.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use citius_http::{
    Action, Declared, Fault, Fields, Head, Method, Output, Payload, ResponseHead, Status, Version,
};

use crate::Context;
use crate::encode::{self, Framing, Persistence};

/// How far a response has come.
///
/// ```text
/// AwaitsResponse ─► Exact | Chunked | UntilClose | Bodiless | Tunnel ─► Done
///     └──────────────────────┴──────────────────────────────────────► Cut
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// No final status is sent.
    AwaitsResponse,
    /// The head is sent; content of a declared length follows.
    Exact(Declared),
    /// The head is sent; chunks follow.
    Chunked,
    /// The head is sent; the body ends with the connection.
    UntilClose,
    /// The head is sent without a body; body pieces of the application are dropped.
    Bodiless,
    /// A 101 is sent; raw bytes follow, until the connection ends.
    Tunnel,
    /// The response is complete.
    Done,
    /// The response will never be complete; the connection ends where it ends.
    Cut,
}

/// A request that is taken, and its response.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one request"
)]
pub(crate) struct Exchange {
    /// Bytes of the response that wait for their turn; none at the front of the queue.
    parked: Option<Box<Output>>,
    /// How far the response has come.
    pub(crate) progress: Progress,
    /// The connection ends with this response.
    pub(crate) closes: bool,
    /// The client said that it ends.
    pub(crate) peer_closes: bool,
    /// The method is HEAD.
    pub(crate) head_only: bool,
    /// The request may change something: those behind it wait until it is answered (RFC 9112 §9.3.2).
    pub(crate) is_unsafe: bool,
    http10: bool,
}

impl Exchange {
    /// Of a request whose head [is simple](Head::is_simple).
    pub(crate) const SIMPLE: Self = Self {
        parked: None,
        progress: Progress::AwaitsResponse,
        closes: false,
        peer_closes: false,
        head_only: false,
        is_unsafe: false,
        http10: false,
    };

    /// Of a request that has just been taken.
    pub(crate) fn new(head: &Head) -> Self {
        Self {
            parked: None,
            progress: Progress::AwaitsResponse,
            closes: !head.keep_alive,
            peer_closes: !head.keep_alive,
            head_only: head.method == Method::Head,
            is_unsafe: !head.method.is_safe(),
            http10: head.version == Version::Http10,
        }
    }

    /// Whether the application may still say something.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.progress, Progress::Done | Progress::Cut)
    }

    /// Whether a final status is sent.
    pub(crate) fn is_begun(&self) -> bool {
        self.progress != Progress::AwaitsResponse
    }

    /// Bytes of the response that wait for their turn.
    pub(crate) fn parked_bytes(&self) -> u64 {
        self.parked.as_ref().map_or(0, |parked| parked.len() as u64)
    }

    /// Whether a plain response is all that is to be sent: nothing is sent yet, no `connection` field is due, and the
    /// body goes with the head.
    #[inline]
    fn is_simple(&self) -> bool {
        self.progress == Progress::AwaitsResponse && !self.closes && !self.head_only && !self.http10
    }

    /// Takes out what waits for its turn, to give it back with [`Exchange::park`].
    #[expect(
        clippy::unnecessary_box_returns,
        reason = "the box goes back into its place"
    )]
    pub(crate) fn unpark(&mut self) -> Box<Output> {
        self.parked.take().unwrap_or_default()
    }

    /// Keeps `output` until the turn has come.
    pub(crate) fn park(&mut self, output: Box<Output>) {
        if !output.is_empty() {
            self.parked = Some(output);
        }
    }

    /// Writes what waited to `out`: the turn has come. Returns the number of bytes.
    fn flush(&mut self, out: &mut Output) -> usize {
        let Some(mut parked) = self.parked.take() else {
            return 0;
        };
        let parked_bytes = parked.len();
        out.append(&mut parked);
        parked_bytes
    }

    /// Does what the application wants; `ends_here` if no response will follow this one.
    ///
    /// # Errors
    /// The application's fault; nothing of the action is written then.
    #[inline]
    pub(crate) fn act(
        &mut self,
        cx: &mut Context<'_>,
        action: Action<'_>,
        ends_here: bool,
        out: &mut Output,
    ) -> Result<(), Fault> {
        match action {
            Action::Respond(response, payload) => {
                self.respond(cx, &response, payload, ends_here, out)
            }
            Action::Inform(response) => self.inform(&response, out),
            Action::Start(response) => self.start(cx, &response, ends_here, out),
            Action::Data(payload) => self.data(payload, out),
            Action::End { trailers } => self.end(trailers, out),
            // Only a connection that was held can become a tunnel, and it knows by itself.
            Action::Switch { .. } => Err(Fault::ResponseOrder),
            Action::Abort => {
                self.progress = Progress::Cut;
                Ok(())
            }
        }
    }

    /// Answers `fault` of the application: 500 while that is possible, else a cut.
    pub(crate) fn fail(
        &mut self,
        cx: &mut Context<'_>,
        fault: Fault,
        ends_here: bool,
        out: &mut Output,
    ) {
        if self.is_begun() {
            self.progress = Progress::Cut;
            return;
        }
        self.closes |= ends_here;
        encode::fault(out, cx, fault, self.persistence(), self.head_only);
        self.progress = Progress::Done;
    }

    #[inline]
    fn respond(
        &mut self,
        cx: &mut Context<'_>,
        response: &ResponseHead<'_>,
        payload: Payload<'_>,
        ends_here: bool,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let media_type = response.content_type.unwrap_or_default();
        let is_known = cx.template.is_for(media_type);
        self.check_final(response, is_known)?;
        let bodiless = self.head_only || response.status.refuses_content();
        let length = response.length_of_whole(payload.len(), bodiless)?;
        let framing = length.map_or(Framing::Bodiless, Framing::Length);
        self.closes |= ends_here || response.fields.close;
        let body_bytes = match payload {
            Payload::Copied(bytes) if !bodiless => bytes.len(),
            _ => 0,
        };
        let persistence = self.persistence();
        match (response.content_type, framing) {
            (Some(_), Framing::Length(length))
                if response.status == Status::OK
                    && response.fields.adds_nothing()
                    && persistence == Persistence::Implied =>
            {
                encode::plain_head(out.tail(), cx, media_type, is_known, length, body_bytes);
            }
            _ => encode::final_head(out.tail(), cx, response, framing, persistence, body_bytes),
        }
        if !bodiless {
            out.push(payload);
        }
        self.progress = Progress::Done;
        Ok(())
    }

    fn inform(&mut self, response: &ResponseHead<'_>, out: &mut Output) -> Result<(), Fault> {
        if self.is_begun() {
            return Err(Fault::ResponseOrder);
        }
        response.check_informational()?;
        // RFC 9110 §15.2: not to HTTP/1.0 clients, which know no such responses.
        if !self.http10 {
            encode::informational(out.tail(), response);
        }
        Ok(())
    }

    fn start(
        &mut self,
        cx: &mut Context<'_>,
        response: &ResponseHead<'_>,
        ends_here: bool,
        out: &mut Output,
    ) -> Result<(), Fault> {
        self.check_final(response, false)?;
        let framing = match response.length_of_streamed() {
            Some(length) => Framing::Length(length),
            None if response.status.has_no_body() => Framing::Bodiless,
            None if self.http10 => Framing::UntilClose,
            None => Framing::Chunked,
        };
        self.closes |= ends_here || response.fields.close || framing == Framing::UntilClose;
        self.progress = match framing {
            _ if self.head_only || response.status.refuses_content() => Progress::Bodiless,
            Framing::Bodiless => Progress::Bodiless,
            Framing::Length(length) => Progress::Exact(Declared::new(Some(length))),
            Framing::Chunked => Progress::Chunked,
            Framing::UntilClose => Progress::UntilClose,
        };
        encode::final_head(out.tail(), cx, response, framing, self.persistence(), 0);
        Ok(())
    }

    /// Grants another protocol.
    pub(crate) fn switch(
        &mut self,
        cx: &Context<'_>,
        protocol: &[u8],
        fields: &Fields,
        out: &mut Output,
    ) -> Result<(), Fault> {
        if self.is_begun() || self.http10 {
            return Err(Fault::ResponseOrder);
        }
        encode::switching(out.tail(), cx, protocol, fields);
        self.progress = Progress::Tunnel;
        self.closes = true;
        Ok(())
    }

    fn data(&mut self, payload: Payload<'_>, out: &mut Output) -> Result<(), Fault> {
        match &mut self.progress {
            Progress::Exact(due) => {
                due.count(payload.len())?;
                out.push(payload);
            }
            Progress::Chunked if payload.is_empty() => {}
            Progress::Chunked => encode::chunk(out, payload),
            Progress::UntilClose | Progress::Tunnel => out.push(payload),
            Progress::Bodiless => {}
            Progress::AwaitsResponse | Progress::Done | Progress::Cut => {
                return Err(Fault::ResponseOrder);
            }
        }
        Ok(())
    }

    fn end(&mut self, trailers: &Fields, out: &mut Output) -> Result<(), Fault> {
        match self.progress {
            Progress::Exact(due) => due.complete()?,
            Progress::UntilClose | Progress::Bodiless | Progress::Tunnel => {}
            Progress::Chunked => encode::last_chunk(out.tail(), trailers),
            Progress::AwaitsResponse | Progress::Done | Progress::Cut => {
                return Err(Fault::ResponseOrder);
            }
        }
        self.progress = Progress::Done;
        Ok(())
    }

    #[inline]
    fn check_final(&self, response: &ResponseHead<'_>, is_known: bool) -> Result<(), Fault> {
        if self.is_begun() {
            return Err(Fault::ResponseOrder);
        }
        response.check_final(is_known)
    }

    #[inline]
    fn persistence(&self) -> Persistence {
        match (self.closes, self.http10) {
            (true, _) => Persistence::Close,
            (false, true) => Persistence::KeepAlive,
            (false, false) => Persistence::Implied,
        }
    }
}

/// The exchanges of a connection, oldest first, numbered without gaps.
///
/// The front has a place of its own, so that a connection that never pipelines never allocates.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    front: Option<Exchange>,
    /// Empty if there is no front.
    behind: VecDeque<Exchange>,
    /// Stream number of the front, or of the next request if there is none.
    first: u32,
    /// Bytes of responses that wait for their turn, over all exchanges.
    parked_bytes: usize,
}

impl Queue {
    /// Exchanges for which an idle connection keeps memory; Japronto's benchmark pipelines 24.
    const IDLE_CAPACITY_MAX: usize = 32;

    /// Bytes of responses that wait for their turn.
    #[inline]
    pub(crate) fn parked_bytes(&self) -> usize {
        self.parked_bytes
    }

    /// Takes note that so many more wait.
    pub(crate) fn add_parked(&mut self, bytes: usize) {
        self.parked_bytes = self.parked_bytes.saturating_add(bytes);
    }

    /// Counts anew what waits, after exchanges were forgotten.
    fn recount(&mut self) {
        let parked = self
            .behind
            .iter()
            .filter_map(|exchange| exchange.parked.as_ref());
        self.parked_bytes = parked.map(|output| output.len()).sum();
    }

    /// Number of exchanges.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.front.is_some()).wrapping_add(self.behind.len())
    }

    /// Whether there is none.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    /// Number of exchanges the application may still say something about.
    pub(crate) fn n_open(&self) -> usize {
        let open = |exchange: &&Exchange| exchange.is_open();
        let behind = self.behind.iter().filter(open).count();
        usize::from(self.front.as_ref().is_some_and(Exchange::is_open)).saturating_add(behind)
    }

    /// Adds the newest and returns its stream number.
    #[inline]
    pub(crate) fn push(&mut self, exchange: Exchange) -> u32 {
        let stream = self.next_stream();
        if self.front.is_none() {
            self.front = Some(exchange);
        } else {
            self.behind.push_back(exchange);
        }
        stream
    }

    /// The position of `stream`, if it is here.
    #[inline]
    pub(crate) fn index_of(&self, stream: u32) -> Option<usize> {
        let index = stream.wrapping_sub(self.first) as usize;
        (index < self.len()).then_some(index)
    }

    /// Whether the exchange at `index` is the newest.
    #[inline]
    pub(crate) fn is_newest(&self, index: usize) -> bool {
        index.saturating_add(1) == self.len()
    }

    /// Stream number of the newest.
    pub(crate) fn newest_stream(&self) -> u32 {
        self.next_stream().wrapping_sub(1)
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the length is at most pipeline_max, a u32"
    )]
    fn next_stream(&self) -> u32 {
        self.first.wrapping_add(self.len() as u32)
    }

    /// The exchange at `index`.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> Option<&Exchange> {
        match index.checked_sub(1) {
            None => self.front.as_ref(),
            Some(behind) => self.behind.get(behind),
        }
    }

    /// The exchange at `index`.
    #[inline]
    pub(crate) fn at_mut(&mut self, index: usize) -> Option<&mut Exchange> {
        match index.checked_sub(1) {
            None => self.front.as_mut(),
            Some(behind) => self.behind.get_mut(behind),
        }
    }

    /// The newest.
    pub(crate) fn newest(&self) -> Option<&Exchange> {
        self.behind.back().or(self.front.as_ref())
    }

    /// The newest.
    pub(crate) fn newest_mut(&mut self) -> Option<&mut Exchange> {
        self.behind.back_mut().or(self.front.as_mut())
    }

    /// Forgets the newest.
    pub(crate) fn remove_newest(&mut self) {
        if self.behind.pop_back().is_none() {
            self.front = None;
        }
        self.recount();
    }

    /// Forgets all that are newer than the one at `index`.
    pub(crate) fn truncate_behind(&mut self, index: usize) {
        self.behind.truncate(index);
        self.recount();
    }

    /// Forgets the front; the next, if there is one, writes to `out` from now on.
    #[inline]
    pub(crate) fn pop(&mut self, out: &mut Output) {
        if self.front.is_none() {
            return;
        }
        self.first = self.first.wrapping_add(1);
        self.front = None;
        if self.behind.capacity() > 0 {
            self.advance(out);
        }
    }

    /// The next one becomes the front.
    fn advance(&mut self, out: &mut Output) {
        self.front = self.behind.pop_front();
        if let Some(front) = &mut self.front {
            self.parked_bytes = self.parked_bytes.saturating_sub(front.flush(out));
        } else if self.behind.capacity() > Self::IDLE_CAPACITY_MAX {
            self.behind = VecDeque::new();
        }
    }

    /// Whether `stream` is the only exchange and a plain response is all that is to be sent.
    #[inline]
    pub(crate) fn is_only_simple(&self, stream: u32) -> bool {
        stream == self.first
            && self.behind.is_empty()
            && self.front.as_ref().is_some_and(Exchange::is_simple)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.front = None;
        self.behind = VecDeque::new();
        self.parked_bytes = 0;
    }
}
