//! The client's unidirectional streams (RFC 9114 §6.2): control, QPACK's two, those of sessions, and others.

use alloc::vec::Vec;

use citius_http::multiplexed::Priority;
use citius_http::{Fault, Millis};

use crate::code::Code;
use crate::connection::Connection;
use crate::frame::{Kind, Partial};
use crate::seam::{Context, Incoming};
use crate::settings::Settings;
use crate::varint;

/// A unidirectional stream of the client's.
#[derive(Debug)]
pub(crate) struct Uni {
    stream: u64,
    kind: UniKind,
    /// When it began.
    at: Millis,
}

#[derive(Debug)]
enum UniKind {
    /// Its type has not come.
    Untyped(Partial),
    /// It is of a session whose number has not come.
    Session(Partial),
    Control,
    Encoder,
    Decoder,
}

/// What is read of the control stream.
#[derive(Debug, Default)]
pub(crate) struct Control {
    partial: Partial,
    frame: Option<(Kind, u64)>,
    /// The payload of a frame that is not whole.
    payload: Vec<u8>,
    settings_received: bool,
    /// The highest push that the client allows, and the push that its GOAWAY has named.
    max_push_id: Option<u64>,
    goaway: Option<u64>,
}

/// Bytes of a frame on the control stream; settings and priorities have a hundred at most.
const CONTROL_FRAME_BYTES_MAX: u64 = 4096;

impl Connection {
    /// Takes bytes of a unidirectional stream.
    pub(crate) fn receive_uni<'i>(
        &mut self,
        cx: &mut Context<'_>,
        stream: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Option<Incoming<'i>> {
        if self.sessions.has_stream(stream) {
            return self.receive_session_stream(stream, input, fin);
        }
        let result = match self.take_uni(cx, stream, input) {
            Ok(true) => return self.receive_session_stream(stream, input, fin),
            Ok(false) if fin => self.end_uni(stream),
            Ok(false) => Ok(()),
            Err(fault) => Err(fault),
        };
        *input = &[];
        if let Err(fault) = result {
            self.end_with(fault);
        }
        None
    }

    /// `true`: it has become a stream of a session.
    fn take_uni(
        &mut self,
        cx: &mut Context<'_>,
        stream: u64,
        input: &mut &[u8],
    ) -> Result<bool, Fault> {
        if self.ignored_unis.contains(&stream) {
            return Ok(false);
        }
        let index = self.index_of_uni(cx, stream)?;
        loop {
            let Some(uni) = self.unis.get_mut(index) else {
                return Ok(false);
            };
            match &mut uni.kind {
                UniKind::Untyped(partial) => {
                    let Some(kind) = partial.single(input) else {
                        self.check_stalled_by(cx.now.saturating_add(cx.limits.head_read_ms.max(1)));
                        return Ok(false);
                    };
                    let kind = self.kind_of_uni(cx, kind)?;
                    if let (Some(kind), Some(uni)) = (kind, self.unis.get_mut(index)) {
                        uni.kind = kind;
                    } else {
                        self.unis.swap_remove(index);
                        self.refuse_uni(stream);
                        return Ok(false);
                    }
                }
                UniKind::Session(partial) => {
                    let Some(session) = partial.single(input) else {
                        self.check_stalled_by(cx.now.saturating_add(cx.limits.head_read_ms.max(1)));
                        return Ok(false);
                    };
                    self.unis.swap_remove(index);
                    return Ok(self.adopt_uni(cx, stream, session));
                }
                UniKind::Control => {
                    self.take_control(cx, input)?;
                    return Ok(false);
                }
                UniKind::Encoder => {
                    self.take_encoder_instructions(cx, input)?;
                    return Ok(false);
                }
                UniKind::Decoder => {
                    self.take_decoder_instructions(cx, input)?;
                    return Ok(false);
                }
            }
        }
    }

    /// Where a stream is in the table, which takes it if it is new.
    fn index_of_uni(&mut self, cx: &Context<'_>, stream: u64) -> Result<usize, Fault> {
        let found = self.unis.iter().position(|uni| uni.stream == stream);
        let index = found.unwrap_or(self.unis.len());
        if found.is_none() {
            if self.unis.len() >= UNIS_MAX {
                return Err(Fault::ExcessiveLoad);
            }
            self.unis.push(Uni {
                stream,
                kind: UniKind::Untyped(Partial::default()),
                at: cx.now,
            });
        }
        Ok(index)
    }

    /// A stream names its session; whether it is taken.
    fn adopt_uni(&mut self, cx: &mut Context<'_>, stream: u64, session: u64) -> bool {
        let is_taken = self.adopt_session_stream(cx, stream, session);
        if !is_taken {
            self.ignore_uni(stream);
        }
        is_taken
    }

    /// A stream is of no use: the client is asked to stop.
    #[cold]
    fn refuse_uni(&mut self, stream: u64) {
        self.reject(stream, Code::StreamCreation);
        self.ignore_uni(stream);
    }

    /// Nothing more of a stream is looked at. What its client has sent before it knows is not another stream.
    #[cold]
    fn ignore_uni(&mut self, stream: u64) {
        if self.ignored_unis.len() >= UNIS_MAX {
            self.ignored_unis.pop_front();
        }
        self.ignored_unis.push_back(stream);
    }

    /// What a stream is whose type has come; `None`: it means nothing here.
    fn kind_of_uni(&mut self, cx: &Context<'_>, number: u64) -> Result<Option<UniKind>, Fault> {
        let kind = match number {
            0x0 => UniKind::Control,
            0x2 => UniKind::Encoder,
            0x3 => UniKind::Decoder,
            // Only a server pushes.
            0x1 => return Err(Fault::StreamCreation),
            0x54 if self.options.webtransport => {
                return Ok(Some(UniKind::Session(Partial::default())));
            }
            _ => {
                self.budget.idle_frame(cx.now, cx.limits)?;
                return Ok(None);
            }
        };
        let is_second = self
            .unis
            .iter()
            .any(|uni| core::mem::discriminant(&uni.kind) == core::mem::discriminant(&kind));
        if is_second {
            return Err(Fault::StreamCreation);
        }
        Ok(Some(kind))
    }

    /// The client has finished a unidirectional stream.
    fn end_uni(&mut self, stream: u64) -> Result<(), Fault> {
        let Some(index) = self.unis.iter().position(|uni| uni.stream == stream) else {
            return Ok(());
        };
        let is_critical = self.unis.get(index).is_some_and(|uni| {
            matches!(
                uni.kind,
                UniKind::Control | UniKind::Encoder | UniKind::Decoder
            )
        });
        if is_critical {
            return Err(Fault::CriticalStreamClosed);
        }
        self.unis.swap_remove(index);
        Ok(())
    }

    /// The client has reset a unidirectional stream.
    pub(crate) fn reset_uni(&mut self, stream: u64) {
        if let Err(fault) = self.end_uni(stream) {
            self.end_with(fault);
        }
    }

    /// Streams whose type has not come in time are refused.
    pub(crate) fn check_unknown_streams(&mut self, cx: &Context<'_>, due: &mut impl FnMut(Millis)) {
        let span_ms = cx.limits.head_read_ms.max(1);
        let mut late = Vec::new();
        self.unis.retain(|uni| {
            if !matches!(uni.kind, UniKind::Untyped(_) | UniKind::Session(_)) {
                return true;
            }
            let until = uni.at.saturating_add(span_ms);
            if until > cx.now {
                due(until);
                return true;
            }
            late.push(uni.stream);
            false
        });
        for stream in late {
            self.refuse_uni(stream);
        }
    }

    /// Frames of the control stream (§7.2).
    fn take_control(&mut self, cx: &mut Context<'_>, input: &mut &[u8]) -> Result<(), Fault> {
        loop {
            let control = &mut self.client_control;
            let Some((kind, left)) = control.frame else {
                let Some((kind, length)) = control.partial.pair(input) else {
                    return Ok(());
                };
                let kind = Kind::of(kind);
                if !control.settings_received && kind != Kind::Settings {
                    return Err(Fault::SettingsMissing);
                }
                match kind {
                    Kind::Settings if control.settings_received => {
                        return Err(Fault::FrameSequence);
                    }
                    Kind::Data | Kind::Headers | Kind::PushPromise | Kind::OfHttp2 => {
                        return Err(Fault::FrameSequence);
                    }
                    Kind::Unknown | Kind::SessionStream => {}
                    _ if length > CONTROL_FRAME_BYTES_MAX => return Err(Fault::ExcessiveLoad),
                    _ => {}
                }
                if kind != Kind::Settings {
                    self.budget.idle_frame(cx.now, cx.limits)?;
                }
                self.client_control.frame = Some((kind, length));
                continue;
            };
            let length = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
            let (came, rest) = input.split_at(length);
            *input = rest;
            let left = left.saturating_sub(length as u64);
            if matches!(kind, Kind::Unknown | Kind::SessionStream) {
                control.frame = (left > 0).then_some((kind, left));
                if left > 0 {
                    return Ok(());
                }
                continue;
            }
            if left > 0 {
                control.payload.extend_from_slice(came);
                control.frame = Some((kind, left));
                return Ok(());
            }
            control.frame = None;
            if control.payload.is_empty() {
                self.take_control_frame(cx, kind, came)?;
            } else {
                let mut payload = core::mem::take(&mut control.payload);
                payload.extend_from_slice(came);
                self.take_control_frame(cx, kind, &payload)?;
            }
        }
    }

    /// A frame of the control stream is whole.
    fn take_control_frame(
        &mut self,
        cx: &Context<'_>,
        kind: Kind,
        mut payload: &[u8],
    ) -> Result<(), Fault> {
        if kind == Kind::Settings {
            self.client_control.settings_received = true;
            self.peer = Settings::read(payload)?;
            return Ok(());
        }
        let id = varint::take(&mut payload).ok_or(Fault::FrameSize)?;
        if kind == Kind::PriorityUpdate {
            return self.take_priority_update(cx, id, payload);
        }
        if !payload.is_empty() && kind != Kind::PushPriorityUpdate {
            return Err(Fault::FrameSize);
        }
        let control = &mut self.client_control;
        match kind {
            Kind::GoAway => {
                if control.goaway.is_some_and(|before| id > before) {
                    return Err(Fault::IdentifierOrder);
                }
                // The client takes no pushes from there on: none is sent anyway.
                control.goaway = Some(id);
                Ok(())
            }
            Kind::MaxPushId => {
                if control.max_push_id.is_some_and(|before| id < before) {
                    return Err(Fault::IdentifierOrder);
                }
                control.max_push_id = Some(id);
                Ok(())
            }
            // Nothing was promised.
            _ => Err(Fault::IdentifierOrder),
        }
    }

    /// RFC 9218 §7.2. The request may be open, over, or not begun.
    fn take_priority_update(
        &mut self,
        cx: &Context<'_>,
        id: u64,
        value: &[u8],
    ) -> Result<(), Fault> {
        let number = u32::try_from(id >> 2).map_err(|_| Fault::IdentifierOrder)?;
        let first_beyond = u64::from(self.next_stream).saturating_add(STREAMS_AHEAD_MAX);
        if id & 3 != 0 || u64::from(number) > first_beyond {
            return Err(Fault::IdentifierOrder);
        }
        let priority = Priority::parse(value);
        if let Some(stream) = self.streams.find_mut(number) {
            stream.priority = priority;
            self.reorder(number);
            return Ok(());
        }
        let (next, unseen) = (self.next_stream, &self.unseen);
        let may_open = |id: u32| id >= next || unseen.contains(&id);
        if may_open(number) {
            self.early.retain(may_open);
            let most = (cx.limits.h3_streams_max as usize).max(1);
            // Beyond that it is forgotten: a priority is a hint.
            self.early.keep(number, priority, most);
        }
        Ok(())
    }

    fn take_encoder_instructions(&mut self, cx: &Context<'_>, input: &[u8]) -> Result<(), Fault> {
        let mut n_taken = 0;
        let done = self.decoder.instructions(input, &mut n_taken);
        self.budget.instructions(n_taken, cx.now, cx.limits)?;
        done.map_err(|_| Fault::EncoderStream)?;
        if n_taken > 0 {
            self.unblock();
            self.count_insertions(cx.limits)?;
        }
        Ok(())
    }

    fn take_decoder_instructions(
        &mut self,
        cx: &Context<'_>,
        input: &mut &[u8],
    ) -> Result<(), Fault> {
        let held = &mut self.decoder_instructions;
        held.extend_from_slice(input);
        *input = &[];
        let mut rest = held.as_slice();
        let mut n_taken = 0;
        let done = citius_qpack::take_instructions_of_decoder(&mut rest, &mut n_taken);
        let n_bytes = held.len().saturating_sub(rest.len());
        held.drain(..n_bytes);
        self.budget.idle_frames(n_taken, cx.now, cx.limits)?;
        done.map_err(|_| Fault::DecoderStream)
    }
}

/// The client's unidirectional streams beside those of sessions: three that mean something, and a few that do not.
const UNIS_MAX: usize = 64;

/// Requests by which a priority may be ahead; more are not allowed to be open anyway.
const STREAMS_AHEAD_MAX: u64 = 1 << 16;
