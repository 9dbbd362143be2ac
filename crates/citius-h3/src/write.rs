//! Bytes going out: what each stream has queued, and whose turn it is (RFC 9218 §10).
//!
//! Responses wait at their streams until QUIC takes them, by reference where they were given so. QUIC has windows and limits
//! of its own; here is only the order.

use alloc::vec::Vec;

use citius_http::Limits;

use crate::connection::{Connection, Local};
use crate::seam::{Context, Control, Outgoing, Taken, Token};
use crate::stream::{Fin, Sender, Turn, quic, request_number};
use citius_http::Fault;

/// Urgency of the control streams, and by how much that of requests is higher.
const CRITICAL: u8 = 0;
const FIRST: u8 = 1;

/// Outputs whose memory is kept, and bytes of one from which it is not.
const SPARE_MAX: usize = 32;
const SPARE_BYTES_MAX: usize = 8 * 1024;

impl Connection {
    /// The stream whose turn it is to send.
    #[inline]
    pub fn next_to_send(&self) -> Option<u64> {
        match self.turns.as_slice() {
            [] => None,
            [turn] => Some(turn.stream),
            turns => turns.iter().min().map(|turn| turn.stream),
        }
    }

    /// What is to be sent on `stream` next.
    #[inline]
    pub fn outgoing(&self, stream: u64) -> Option<Outgoing<'_>> {
        let sender = self.sender(stream)?;
        Some(Outgoing {
            output: &sender.output,
            fin: sender.fin == Fin::Due,
        })
    }

    /// So much of it was taken.
    #[inline]
    pub fn taken(&mut self, cx: &mut Context<'_>, stream: u64, taken: Taken) {
        let Some(sender) = self.sender_mut(stream) else {
            self.turns.retain(|turn| turn.stream != stream);
            return;
        };
        match taken {
            Taken::Some(n_bytes) | Taken::Blocked(n_bytes) => {
                sender.output.advance(n_bytes);
                sender.moved_bytes = sender.moved_bytes.saturating_add(n_bytes as u64);
                let is_blocked = matches!(taken, Taken::Blocked(_));
                if is_blocked && !sender.is_blocked {
                    sender.is_blocked = true;
                    sender.waiting_at = cx.now;
                    sender.moved_bytes = 0;
                }
                let is_due = sender.is_due();
                if is_blocked {
                    self.check_stalled_by(cx.now.saturating_add(cx.limits.write_stall_ms.max(1)));
                }
                if is_blocked || !is_due {
                    self.unschedule(stream);
                } else {
                    self.serve_another(stream);
                }
            }
            Taken::All => {
                let is_over = sender.fin == Fin::Due;
                sender.output.clear();
                if is_over {
                    sender.fin = Fin::Sent;
                }
                self.unschedule(stream);
                self.free_memory(stream);
                if !self.sessions.is_empty() {
                    self.sessions.all_is_taken(stream);
                }
                if is_over {
                    self.end_is_sent(cx, stream);
                }
            }
        }
    }

    /// `stream` takes bytes again.
    pub fn writable(&mut self, stream: u64) {
        let Some(sender) = self.sender_mut(stream) else {
            return;
        };
        if core::mem::take(&mut sender.is_blocked) && sender.is_due() {
            self.schedule(stream);
        }
    }

    /// A file that `stream` sends has ended too early, or can't be read.
    #[cold]
    pub fn cut(&mut self, cx: &mut Context<'_>, stream: u64) {
        if let Ok(id) = u32::try_from(stream >> 2) {
            self.since = cx.now;
            self.drop_stream(id, Some(crate::code::Code::Internal));
        }
    }

    /// The next thing to do for QUIC.
    #[inline]
    pub fn next_control(&mut self) -> Option<Control> {
        self.controls.pop_front()
    }

    /// A stream that [`Control`] has asked for is open.
    pub fn opened(&mut self, token: Token, stream: u64) {
        let local = match token {
            Token::Control => &mut self.control,
            Token::Decoder => &mut self.acknowledgements,
            Token::Session(number) => return self.session_stream_opened(number, stream),
        };
        local.stream = Some(stream);
        if local.sender.is_due() {
            self.schedule(stream);
        }
    }

    /// Something is to be sent on a control stream.
    pub(crate) fn schedule_control(&mut self) {
        if let Some(stream) = self.control.stream {
            self.schedule(stream);
        }
    }

    /// Something is to be sent on `stream`.
    #[inline]
    pub(crate) fn schedule(&mut self, stream: u64) {
        if self.turns.iter().any(|turn| turn.stream == stream) {
            return;
        }
        let Some(sender) = self.sender(stream) else {
            return;
        };
        if sender.is_blocked {
            return;
        }
        let turn = self.turn_of(stream);
        self.turns.push(turn);
    }

    fn turn_of(&self, stream: u64) -> Turn {
        let mut turn = Turn {
            urgency: CRITICAL,
            shares: false,
            served: 0,
            stream,
        };
        if let Some(request) = self.request_of(stream) {
            turn.urgency = request.priority.urgency.saturating_add(FIRST);
            turn.shares = request.priority.incremental;
            turn.served = if turn.shares { request.served } else { 0 };
        } else if self.sessions.has_stream(stream) {
            // As a request without a priority that shares: sessions are full of streams of which none waits for another.
            turn.urgency = citius_http::multiplexed::Priority::default()
                .urgency
                .saturating_add(FIRST);
            turn.shares = true;
            turn.served = self.sessions.served(stream);
        }
        turn
    }

    /// The priority of a request has changed.
    pub(crate) fn reorder(&mut self, id: u32) {
        let turn = self.turn_of(quic(id));
        if let Some(waiting) = self
            .turns
            .iter_mut()
            .find(|other| other.stream == turn.stream)
        {
            *waiting = turn;
        }
    }

    fn unschedule(&mut self, stream: u64) {
        if let Some(index) = self.turns.iter().position(|turn| turn.stream == stream) {
            self.turns.swap_remove(index);
        }
    }

    /// Among streams that share, another comes next.
    fn serve_another(&mut self, stream: u64) {
        self.n_served = self.n_served.wrapping_add(1);
        let n_served = self.n_served;
        if let Some(turn) = self.turns.iter_mut().find(|turn| turn.stream == stream)
            && turn.shares
        {
            turn.served = n_served;
        }
        if let Some(id) = request_number(stream)
            && let Some(request) = self.streams.find_mut(id)
        {
            request.served = n_served;
        } else {
            self.sessions.note_served(stream, n_served);
        }
    }

    fn request_of(&self, stream: u64) -> Option<&crate::stream::Stream> {
        self.streams.find(request_number(stream)?)
    }

    #[inline]
    pub(crate) fn sender(&self, stream: u64) -> Option<&Sender> {
        if let Some(id) = request_number(stream)
            && let Some(request) = self.streams.find(id)
        {
            return Some(&request.sender);
        }
        let is_it = |local: &&Local| local.stream == Some(stream);
        let local = [&self.control, &self.acknowledgements]
            .into_iter()
            .find(is_it);
        local
            .map(|local| &local.sender)
            .or_else(|| self.sessions.sender(stream))
    }

    #[inline]
    pub(crate) fn sender_mut(&mut self, stream: u64) -> Option<&mut Sender> {
        if let Some(id) = request_number(stream)
            && let Some(index) = self.streams.index_of(id)
        {
            return self
                .streams
                .at_mut(index)
                .map(|request| &mut request.sender);
        }
        if self.control.stream == Some(stream) {
            return Some(&mut self.control.sender);
        }
        if self.acknowledgements.stream == Some(stream) {
            return Some(&mut self.acknowledgements.sender);
        }
        self.sessions.sender_mut(stream)
    }

    /// The end of a stream has left.
    #[inline]
    fn end_is_sent(&mut self, cx: &mut Context<'_>, stream: u64) {
        if let Some(id) = request_number(stream)
            && let Some(request) = self.streams.find_mut(id)
        {
            if !request.state.is_local_closed() {
                let ended = request.state.send_end();
                debug_assert_eq!(ended, Ok(()), "the response is complete");
            }
            return self.finish_stream(cx, id);
        }
        self.sessions.local_end_is_sent(stream);
    }

    /// Lends memory to a stream whose first bytes are about to be queued.
    #[inline]
    pub(crate) fn lend_memory(&mut self, id: u32) {
        if let Some(mut spare) = self.spare.pop()
            && let Some(request) = self.streams.find_mut(id)
        {
            if request.sender.output.is_empty() && request.sender.output.capacity() == 0 {
                request.sender.output.lend(&mut spare);
            } else {
                self.spare.push(spare);
            }
        }
    }

    #[inline]
    fn free_memory(&mut self, stream: u64) {
        if let Some(sender) = self.sender_mut(stream) {
            let memory = sender.output.take_memory();
            self.keep(memory);
        }
    }

    /// Takes the memory of a stream that is over.
    pub(crate) fn keep_memory(&mut self, sender: &mut Sender) {
        sender.output.clear();
        let memory = sender.output.take_memory();
        self.keep(memory);
    }

    #[inline]
    fn keep(&mut self, mut memory: Vec<u8>) {
        let is_useful = (1..=SPARE_BYTES_MAX).contains(&memory.capacity());
        if is_useful && self.spare.len() < SPARE_MAX {
            memory.clear();
            self.spare.push(memory);
        }
    }

    // --- the decoder stream -------------------------------------------------------------------

    /// Tells the encoder that a section was read.
    #[inline]
    pub(crate) fn acknowledge(&mut self, stream: u64, required: u64) {
        if required > 0 {
            let out = self.acknowledgements.sender.output.tail();
            self.decoder.acknowledge(stream, required, out);
            self.schedule_acknowledgements();
        }
    }

    /// Tells the encoder that a section will not be read.
    #[cold]
    pub(crate) fn cancel_section(&mut self, stream: u64) {
        self.decoder
            .cancel(stream, self.acknowledgements.sender.output.tail());
        self.schedule_acknowledgements();
    }

    /// Tells the encoder what has come.
    pub(crate) fn count_insertions(&mut self, limits: &Limits) -> Result<(), Fault> {
        let out = &mut self.acknowledgements.sender.output;
        self.decoder.count_insertions(out.tail());
        if out.len() > limits.write_queue_bytes_max as usize {
            return Err(Fault::ExcessiveLoad);
        }
        self.schedule_acknowledgements();
        Ok(())
    }

    fn schedule_acknowledgements(&mut self) {
        if let Some(stream) = self.acknowledgements.stream
            && self.acknowledgements.sender.is_due()
        {
            self.schedule(stream);
        }
    }
}
