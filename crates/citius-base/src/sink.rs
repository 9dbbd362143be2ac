//! Where the actions of an application go: into the turn that runs it, or into the mailbox of its reactor.
//!
//! In: [`Action`]s. Out: calls of [`Reply`] within a turn, [`StreamCommand`]s at any other time. Python objects are copied
//! or kept alive, never borrowed beyond a call.

use bytes::Bytes;
use citius_http::{Action, Fault, Payload, PlainResponse};
use citius_reactor::{Reply, ResponseAction, StreamCommand, StreamId};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::reactor_handle::ReactorHandle;

/// Where a response goes: straight into the turn, or into the mailbox.
pub trait Sink {
    /// Within a turn, where exchanges may be entered.
    const IN_TURN: bool;

    /// Sends a part of the response.
    fn send(&mut self, py: Python<'_>, action: Action<'_>) -> Result<(), Fault>;

    /// Does what has been queued during a step.
    fn deliver(&mut self, py: Python<'_>, command: StreamCommand) -> Result<(), Fault>;

    /// Sends a plain response, if there is a shorter way; `false`: nothing is done.
    #[inline]
    fn respond(&mut self, _plain: PlainResponse<'_>) -> bool {
        false
    }
}

impl Sink for Reply<'_> {
    const IN_TURN: bool = true;

    #[inline]
    fn send(&mut self, _py: Python<'_>, action: Action<'_>) -> Result<(), Fault> {
        Reply::send(self, action)
    }

    fn deliver(&mut self, _py: Python<'_>, command: StreamCommand) -> Result<(), Fault> {
        Reply::deliver(self, command)
    }

    #[inline]
    fn respond(&mut self, plain: PlainResponse<'_>) -> bool {
        Reply::respond(self, plain)
    }
}

/// The way to a stream from outside a turn.
pub struct Late<'a> {
    /// The reactor that has the stream.
    pub handle: &'a ReactorHandle,
    /// The stream.
    pub id: StreamId,
}

impl Sink for Late<'_> {
    const IN_TURN: bool = false;

    fn send(&mut self, py: Python<'_>, action: Action<'_>) -> Result<(), Fault> {
        let media = |media: Option<&[u8]>| media.map(Bytes::copy_from_slice);
        let post = match action {
            Action::Respond(response, body) => ResponseAction::Respond {
                status: response.status,
                content_type: media(response.content_type),
                fields: response.fields.clone(),
                body: body.into_owned(),
            },
            Action::Start(response) => ResponseAction::Start {
                status: response.status,
                content_type: media(response.content_type),
                fields: response.fields.clone(),
            },
            Action::Data(body) => ResponseAction::Data(body.into_owned()),
            Action::End { trailers } => ResponseAction::End(trailers.clone()),
            Action::Abort => ResponseAction::Abort,
            // There is a command for that.
            Action::Switch { .. } => return Err(Fault::ResponseOrder),
            Action::Inform(response) => ResponseAction::Inform {
                status: response.status,
                fields: response.fields.clone(),
            },
        };
        self.deliver(py, StreamCommand::Act(post))
    }

    fn deliver(&mut self, py: Python<'_>, command: StreamCommand) -> Result<(), Fault> {
        self.handle.post(py, self.id, command);
        Ok(())
    }
}

/// Body bytes of a Python object: copied when small, kept alive when large.
pub fn payload<'a>(bytes: &'a Bound<'_, PyBytes>) -> Payload<'a> {
    let view = bytes.as_bytes();
    if view.len() < citius_http::Output::SHARED_BYTES_MIN {
        Payload::Copied(view)
    } else {
        Payload::Shared(Bytes::from_owner(pyo3::pybacked::PyBackedBytes::from(
            bytes.clone(),
        )))
    }
}
