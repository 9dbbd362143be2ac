//! What the fields of a head say about the connection and about the length of the content: the same for requests and responses
//! (RFC 9112 §6, §9.3).

use citius_http::Fault;
use citius_http::fields::parse_decimal;

/// Gathered line by line.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "what each line says, before they are weighed against each other"
)]
pub(crate) struct Framing {
    pub(crate) content_length: Option<u64>,
    pub(crate) chunked: bool,
    pub(crate) close: bool,
    pub(crate) keep_alive: bool,
    pub(crate) upgrade: bool,
}

impl Framing {
    /// Takes note of one field line. Names are told apart by length first: few lines pass that.
    ///
    /// # Errors
    /// A length or a transfer coding with more than one reading.
    #[inline]
    pub(crate) fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => self.note_connection(value),
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                let length = parse_decimal(value).ok_or(Fault::ContentLengthSyntax)?;
                if self.content_length.replace(length).is_some() {
                    return Err(Fault::ContentLengthSyntax);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Fault::TransferEncoding);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn note_connection(&mut self, value: &[u8]) {
        // What nearly every client sends, if it sends anything.
        if value == b"keep-alive" {
            self.keep_alive = true;
            return;
        }
        for option in value.split(|&byte| byte == b',') {
            let option = option.trim_ascii();
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            self.upgrade |= option.eq_ignore_ascii_case(b"upgrade");
        }
    }

    /// Whether the content comes in chunks.
    ///
    /// # Errors
    /// A message with two lengths, or with a transfer coding that its version does not have.
    #[inline]
    pub(crate) fn is_chunked(&self, http11: bool) -> Result<bool, Fault> {
        match (self.chunked, self.content_length) {
            (true, _) if !http11 => Err(Fault::TransferEncodingInHttp10),
            (true, Some(_)) => Err(Fault::AmbiguousLength),
            (is_chunked, _) => Ok(is_chunked),
        }
    }

    /// Whether the sender lets the connection live on.
    #[inline]
    pub(crate) fn lets_live_on(&self, http11: bool) -> bool {
        !self.close && (http11 || self.keep_alive)
    }
}
