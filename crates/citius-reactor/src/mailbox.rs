//! The one way back for responses that come late or from another thread.
//!
//! In: commands, posted under a lock that is held for a push. Out: all commands at once, to the turn. The wake-up is separate
//! from the post, because the sender knows the cheapest one: a coroutine on the reactor's thread schedules the next turn on its
//! loop, another thread wakes the poller.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use citius_http::{Action, Fields, Payload, ResponseHead, Status};
use citius_ws::{Agreed, Close, Kind};

use crate::broadcast::Broadcast;
use crate::id::StreamId;
use crate::poller::Waker;
use crate::session_command::SessionCommand;

/// An [`Action`] that owns what it says.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants are those of Action")]
pub enum ResponseAction {
    Inform {
        status: Status,
        fields: Fields,
    },
    Respond {
        status: Status,
        content_type: Option<Bytes>,
        fields: Fields,
        body: Payload<'static>,
    },
    Start {
        status: Status,
        content_type: Option<Bytes>,
        fields: Fields,
    },
    Data(Payload<'static>),
    End(Fields),
    Abort,
}

impl ResponseAction {
    pub(crate) fn borrowed(&self) -> Action<'_> {
        fn response<'a>(
            status: Status,
            media: Option<&'a Bytes>,
            fields: &'a Fields,
        ) -> ResponseHead<'a> {
            ResponseHead {
                status,
                content_type: media.map(AsRef::as_ref),
                fields,
            }
        }
        match self {
            Self::Inform { status, fields } => Action::Inform(response(*status, None, fields)),
            Self::Respond {
                status,
                content_type,
                fields,
                body,
            } => Action::Respond(
                response(*status, content_type.as_ref(), fields),
                body.clone(),
            ),
            Self::Start {
                status,
                content_type,
                fields,
            } => Action::Start(response(*status, content_type.as_ref(), fields)),
            Self::Data(bytes) => Action::Data(bytes.clone()),
            Self::End(trailers) => Action::End { trailers },
            Self::Abort => Action::Abort,
        }
    }
}

/// What may be said to a stream from outside a turn.
#[derive(Debug)]
pub enum StreamCommand {
    /// Do this.
    Act(ResponseAction),
    /// Bring this many more bytes of the body.
    Want(u64),
    /// Note the code of the remote procedure call that the request is.
    RpcCode(u8),
    /// Note how many microseconds another server took to which the request was passed on.
    UpstreamTime(u64),
    /// Tell the service when there is room.
    AwaitWritable,
    /// Make a tunnel of the request, in which a WebSocket's frames pass as they are; with these fields in the response.
    Switch(Fields),
    /// Nothing more goes to the client in the tunnel that was made of the request; what it sends still comes. All that went before has
    /// left: the service was told of room.
    EndOutput,
    /// Make a WebSocket of the request, with these fields in the response.
    Open(Agreed, Fields),
    /// Send a message on the WebSocket.
    Message(Kind, Bytes),
    /// Send one that others get as well.
    Broadcast(Arc<Broadcast>),
    /// Take messages again.
    Resume,
    /// Close the WebSocket.
    Close(Close),
    /// Something for the WebTransport session.
    Session(Box<SessionCommand>),
}

/// Commands on their way to the next turn.
#[derive(Debug)]
pub struct Mailbox {
    commands: Mutex<Vec<(StreamId, StreamCommand)>>,
    /// The next turn is certain: it runs, or its wake-up has been requested.
    expected: AtomicBool,
    /// There may be broadcasts among the commands.
    has_broadcasts: AtomicBool,
    /// The service is to be called.
    calls_service: AtomicBool,
    waker: Waker,
}

impl Mailbox {
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            commands: Mutex::default(),
            expected: AtomicBool::new(false),
            has_broadcasts: AtomicBool::new(false),
            calls_service: AtomicBool::new(false),
            waker,
        }
    }

    /// Posts a command. `true`: no turn is certain to come, so the caller has to wake one, by
    /// [`wake`](Self::wake) or by calling the turn.
    #[must_use = "without a wake-up the command waits for another one"]
    pub fn post(&self, id: StreamId, command: StreamCommand) -> bool {
        self.lock().push((id, command));
        !self.expected.swap(true, Ordering::AcqRel)
    }

    /// Posts one message to all of `ids`; as [`post`](Self::post) otherwise.
    #[must_use = "without a wake-up the commands wait for another one"]
    pub fn post_broadcast(
        &self,
        ids: impl Iterator<Item = StreamId>,
        broadcast: &Arc<Broadcast>,
    ) -> bool {
        let command = |id| (id, StreamCommand::Broadcast(Arc::clone(broadcast)));
        self.lock().extend(ids.map(command));
        self.has_broadcasts.store(true, Ordering::Release);
        !self.expected.swap(true, Ordering::AcqRel)
    }

    /// Asks for a turn without a command; as [`post`](Self::post) otherwise.
    #[must_use = "without a wake-up the turn waits for another one"]
    pub fn expect_turn(&self) -> bool {
        !self.expected.swap(true, Ordering::AcqRel)
    }

    /// Has the next turn call [`Service::called`](crate::Service::called); as [`post`](Self::post) otherwise.
    #[must_use = "without a wake-up the call waits for another one"]
    pub fn call_service(&self) -> bool {
        self.calls_service.store(true, Ordering::Release);
        !self.expected.swap(true, Ordering::AcqRel)
    }

    /// Whether the service is to be called, once.
    #[inline]
    pub(crate) fn takes_service_call(&self) -> bool {
        self.calls_service.load(Ordering::Acquire)
            && self.calls_service.swap(false, Ordering::AcqRel)
    }

    /// Has a turn begin soon; callable from any thread and from signal handlers.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Whether a turn comes or runs.
    pub fn is_expected(&self) -> bool {
        self.expected.load(Ordering::Acquire)
    }

    /// A turn begins or ends. While it runs, no wake-up is needed.
    pub(crate) fn set_expected(&self, expected: bool) {
        self.expected.store(expected, Ordering::Release);
    }

    /// Takes all commands; `spare` is the empty vector that collects the next ones.
    ///
    /// Several broadcasts are sorted by their receivers, so that each writes once.
    pub(crate) fn take(
        &self,
        spare: Vec<(StreamId, StreamCommand)>,
    ) -> Vec<(StreamId, StreamCommand)> {
        let mut commands = std::mem::replace(&mut *self.lock(), spare);
        if self.has_broadcasts.load(Ordering::Acquire) {
            self.has_broadcasts.store(false, Ordering::Release);
            commands.sort_by_key(|(id, _)| id.connection);
        }
        commands
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty() && !self.calls_service.load(Ordering::Acquire)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(StreamId, StreamCommand)>> {
        // A push cannot panic half-way, so a poisoned lock holds a whole vector.
        self.commands
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
