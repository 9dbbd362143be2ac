//! The response of an HTTP/1.1 server: its head by `httparse`, its body by length, in chunks, or until the end (RFC 9112 §6.3).

use super::error::{NetError, Reason, Result};

/// A response in full.
#[derive(Debug, Default)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names and values in the order in which they came.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// Bytes of a head, and of the trailer section.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Field lines of a head.
const FIELDS_MAX: usize = 128;
/// Bytes of the line before a chunk.
const CHUNK_LINE_BYTES_MAX: usize = 1024;

/// What delimits the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Length(usize),
    Chunked(Chunk),
    UntilEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chunk {
    /// The line with the size of the next one.
    Line,
    /// So many bytes of it are left.
    Data(usize),
    /// The line end behind it.
    End,
    /// The trailer section, of which so many bytes have come.
    Trailers(usize),
}

/// Reads one response out of bytes as they come.
#[derive(Debug)]
pub(crate) struct Reader {
    input: Vec<u8>,
    response: Response,
    /// `None`: the head has not come in full.
    framing: Option<Framing>,
    is_head_request: bool,
    body_bytes_max: usize,
    is_complete: bool,
    keeps_alive: bool,
}

fn wrong(what: &str) -> NetError {
    NetError::new(
        Reason::Protocol,
        format!("the server's response is no HTTP/1.1: {what}"),
    )
}

impl Reader {
    pub(crate) fn new(is_head_request: bool, body_bytes_max: usize) -> Self {
        Self {
            input: Vec::new(),
            response: Response::default(),
            framing: None,
            is_head_request,
            body_bytes_max,
            is_complete: false,
            keeps_alive: false,
        }
    }

    /// Whether nothing of the response has come.
    pub(crate) fn is_untouched(&self) -> bool {
        self.input.is_empty() && self.framing.is_none()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the connection takes another request: to be asked at the end.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.keeps_alive && self.input.is_empty()
    }

    /// The connection takes no other request.
    pub(crate) fn spoil(&mut self) {
        self.keeps_alive = false;
    }

    pub(crate) fn into_response(self) -> Response {
        self.response
    }

    /// Takes bytes that have come.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<()> {
        self.input.extend_from_slice(bytes);
        while self.framing.is_none() {
            if !self.read_head()? {
                return Ok(());
            }
        }
        self.read_body()
    }

    /// The server sends no more.
    pub(crate) fn end(&mut self) -> Result<()> {
        if self.framing == Some(Framing::UntilEnd) {
            self.is_complete = true;
        }
        if self.is_complete {
            return Ok(());
        }
        let what = match self.framing {
            None if self.input.is_empty() => "before its response",
            None => "in the head of its response",
            Some(_) => "in the body of its response",
        };
        Err(NetError::new(
            Reason::Ended,
            format!("the server has ended the connection {what}"),
        ))
    }

    /// `false`: it has not come in full. A head of an interim response (1xx) is read and dropped.
    fn read_head(&mut self) -> Result<bool> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = match head.parse(&self.input) {
            Ok(parsed) => parsed,
            Err(httparse::Error::TooManyHeaders) => {
                return Err(too_large(&format!("more than {FIELDS_MAX} fields")));
            }
            Err(error) => return Err(wrong(&error.to_string())),
        };
        let httparse::Status::Complete(size) = parsed else {
            if self.input.len() > HEAD_BYTES_MAX {
                return Err(too_large(&format!(
                    "a head of more than {HEAD_BYTES_MAX} bytes"
                )));
            }
            return Ok(false);
        };
        let status = head.code.unwrap_or(0);
        let is_1_1 = head.version == Some(1);
        if status == 101 {
            return Err(wrong(
                "it switches protocols (101), which was not asked for",
            ));
        }
        if !(100..600).contains(&status) {
            return Err(wrong(&format!("the status {status}")));
        }
        if status >= 200 {
            self.response.status = status;
            self.response.fields = head
                .headers
                .iter()
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect();
        }
        self.input.drain(..size);
        if status >= 200 {
            self.framing = Some(self.framing_of(is_1_1)?);
        }
        Ok(status >= 200 || !self.input.is_empty())
    }

    fn framing_of(&mut self, is_1_1: bool) -> Result<Framing> {
        let codings = list(&self.response.fields, "transfer-encoding");
        let mut lengths = list(&self.response.fields, "content-length");
        let options = list(&self.response.fields, "connection");
        self.keeps_alive = is_1_1 && !options.iter().any(|option| option == "close");
        let has_none = self.is_head_request || matches!(self.response.status, 204 | 304);
        if has_none {
            return Ok(Framing::Length(0));
        }
        if !codings.is_empty() {
            if codings != ["chunked"] || !is_1_1 {
                return Err(wrong(&format!("the transfer coding {codings:?}")));
            }
            // Two lengths: the connection is not used again (RFC 9112 §6.1).
            self.keeps_alive &= lengths.is_empty();
            return Ok(Framing::Chunked(Chunk::Line));
        }
        lengths.dedup();
        match &lengths[..] {
            [] => {
                self.keeps_alive = false;
                Ok(Framing::UntilEnd)
            }
            [length] if !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit()) => {
                let length = length.parse().unwrap_or(usize::MAX);
                self.check_size(length)?;
                Ok(Framing::Length(length))
            }
            _ => Err(wrong(&format!("the content length {lengths:?}"))),
        }
    }

    fn check_size(&self, more: usize) -> Result<()> {
        if self.response.body.len().saturating_add(more) > self.body_bytes_max {
            return Err(too_large(&format!(
                "a body of more than {} bytes, which is what the caller takes",
                self.body_bytes_max
            )));
        }
        Ok(())
    }

    fn read_body(&mut self) -> Result<()> {
        while !self.is_complete {
            match self.framing {
                Some(Framing::Length(left)) => {
                    let taken = self.take_body(left)?;
                    self.framing = Some(Framing::Length(left - taken));
                    self.is_complete = left == taken;
                    if !self.is_complete {
                        return Ok(());
                    }
                }
                Some(Framing::UntilEnd) => {
                    self.take_body(usize::MAX)?;
                    return Ok(());
                }
                Some(Framing::Chunked(chunk)) => {
                    let Some(next) = self.read_chunk(chunk)? else {
                        return Ok(());
                    };
                    self.framing = Some(Framing::Chunked(next));
                }
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// What comes next; `None`: it has not come in full.
    fn read_chunk(&mut self, chunk: Chunk) -> Result<Option<Chunk>> {
        match chunk {
            Chunk::Line => match httparse::parse_chunk_size(&self.input) {
                Ok(httparse::Status::Complete((line, size))) => {
                    let size = usize::try_from(size).unwrap_or(usize::MAX);
                    self.check_size(size)?;
                    self.input.drain(..line);
                    Ok(Some(if size == 0 {
                        Chunk::Trailers(0)
                    } else {
                        Chunk::Data(size)
                    }))
                }
                Ok(httparse::Status::Partial) if self.input.len() <= CHUNK_LINE_BYTES_MAX => {
                    Ok(None)
                }
                Ok(httparse::Status::Partial) | Err(_) => Err(wrong("the size of a chunk")),
            },
            Chunk::Data(left) => {
                let taken = self.take_body(left)?;
                Ok(match left - taken {
                    0 => Some(Chunk::End),
                    _ if taken == 0 => None,
                    left => Some(Chunk::Data(left)),
                })
            }
            Chunk::End => match &self.input[..] {
                [b'\r', b'\n', ..] => {
                    self.input.drain(..2);
                    Ok(Some(Chunk::Line))
                }
                [] | [b'\r'] => Ok(None),
                _ => Err(wrong("a chunk is longer than its size")),
            },
            Chunk::Trailers(before) => {
                let Some(end) = self.input.iter().position(|&byte| byte == b'\n') else {
                    return if self.input.len() + before > HEAD_BYTES_MAX {
                        Err(too_large("a trailer section"))
                    } else {
                        Ok(None)
                    };
                };
                let is_last = matches!(&self.input[..end], [] | [b'\r']);
                self.input.drain(..=end);
                self.is_complete = is_last;
                if before + end > HEAD_BYTES_MAX {
                    return Err(too_large("a trailer section"));
                }
                Ok(Some(Chunk::Trailers(before + end + 1)))
            }
        }
    }

    /// Moves at most `left` bytes to the body; how many.
    fn take_body(&mut self, left: usize) -> Result<usize> {
        let count = self.input.len().min(left);
        self.check_size(count)?;
        self.response.body.extend_from_slice(&self.input[..count]);
        self.input.drain(..count);
        Ok(count)
    }
}

fn too_large(what: &str) -> NetError {
    NetError::new(
        Reason::TooLarge,
        format!("the server's response has {what}"),
    )
}

/// The members of a list-based field, in lower case.
fn list(fields: &[(String, Vec<u8>)], name: &str) -> Vec<String> {
    let lines = fields
        .iter()
        .filter(|(other, _)| other.eq_ignore_ascii_case(name));
    lines
        .flat_map(|(_, value)| {
            let text = String::from_utf8_lossy(value).to_ascii_lowercase();
            let members = text.split(',').map(|member| member.trim().to_owned());
            members.collect::<Vec<_>>()
        })
        .collect()
}
