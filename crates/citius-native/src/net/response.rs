//! The response of an HTTP/1.1 server in full, gathered from what [`citius_h1::client`] reads.

use citius_h1::client::{Asked, Connection, Event, Fault, Limits, ResponseHead};
use citius_reactor::Inbox;

use super::error::{NetError, Reason, Result};

/// A response in full.
#[derive(Debug, Default)]
pub struct Response {
    pub(crate) head: ResponseHead,
    pub(crate) body: Vec<u8>,
}

/// Reads one response out of bytes as they come.
#[derive(Debug)]
pub(crate) struct Reader {
    connection: Connection,
    limits: Limits,
    inbox: Inbox,
    response: Response,
    is_complete: bool,
    is_spoiled: bool,
}

/// Bytes of a body that is announced, for which memory is taken before they come.
const RESERVED_BYTES_MAX: u64 = 1024 * 1024;

impl Reader {
    pub(crate) fn new(asked: Asked, body_bytes_max: usize) -> Self {
        let mut connection = Connection::default();
        connection.begin(asked);
        Self {
            connection,
            limits: Limits {
                body_bytes_max: body_bytes_max as u64,
                ..Limits::DEFAULT
            },
            inbox: Inbox::default(),
            response: Response::default(),
            is_complete: false,
            is_spoiled: false,
        }
    }

    /// Whether nothing of the response has come.
    pub(crate) fn is_untouched(&self) -> bool {
        self.connection.is_untouched()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the connection takes another request: to be asked at the end.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.connection.is_idle() && self.inbox.is_empty() && !self.is_spoiled
    }

    /// The connection takes no other request.
    pub(crate) fn spoil(&mut self) {
        self.is_spoiled = true;
    }

    pub(crate) fn into_response(self) -> Response {
        self.response
    }

    /// Takes bytes that have come.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<()> {
        let (mut inbox, mut result) = (std::mem::take(&mut self.inbox), Ok(()));
        inbox.receive(bytes, |bytes| {
            let mut input = bytes;
            result = self.read(&mut input);
            input.len()
        });
        self.inbox = inbox;
        result
    }

    fn read(&mut self, input: &mut &[u8]) -> Result<()> {
        while !self.is_complete {
            let event = self.connection.receive(&self.limits, input);
            let Some(event) = event.map_err(|fault| self.error_of(fault))? else {
                break;
            };
            self.take(event);
        }
        Ok(())
    }

    /// The server sends no more.
    pub(crate) fn end(&mut self) -> Result<()> {
        let event = self.connection.receive_eof();
        if let Some(event) = event.map_err(|fault| self.error_of(fault))? {
            self.take(event);
        }
        Ok(())
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Head(head) => {
                let announced = head.content_length.unwrap_or(0).min(RESERVED_BYTES_MAX);
                self.response
                    .body
                    .reserve_exact(usize::try_from(announced).unwrap_or(0));
                self.response.head = head;
            }
            Event::Data(bytes) => self.response.body.extend_from_slice(bytes),
            Event::End(_) => self.is_complete = true,
            // No request asks for a tunnel.
            Event::Interim(_) | Event::Tunnel(_) => {}
        }
    }

    fn error_of(&self, fault: Fault) -> NetError {
        let text = fault.text();
        if fault == Fault::BodyTooLong {
            let most = self.limits.body_bytes_max;
            return NetError::new(
                Reason::TooLarge,
                format!(
                    "the server's response has a body of more than {most} bytes, which is what the caller takes"
                ),
            );
        }
        if fault.is_size() {
            let text = format!("the server's response is too large: {text}");
            return NetError::new(Reason::TooLarge, text);
        }
        if fault.is_end() {
            let text = format!("the server has ended the connection: {text}");
            return NetError::new(Reason::Ended, text);
        }
        let spec = fault.spec();
        NetError::new(
            Reason::Protocol,
            format!("the server's response is no HTTP/1.1: {text} ({spec})"),
        )
    }
}
