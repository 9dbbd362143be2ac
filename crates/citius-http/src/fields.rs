//! The field section of a response, checked as it is built.
//!
//! Kept in HTTP/1.1's own form, `name: value CRLF` with lower-case names, so that the common
//! protocol copies it in one piece; HTTP/2 splits it again with [`Fields::iter`]. Invariant: no
//! byte in it can end a line early, so an application cannot write into the next field or response.
//!
//! Fields that frame the message are not kept as text: `content-length` becomes a number that the
//! body is held against, `connection: close` a flag. `transfer-encoding`, `keep-alive`, `upgrade`
//! and `proxy-connection` are the server's business, `te` is of requests (RFC 9114 §4.2): they are refused.

use alloc::vec::Vec;

use crate::Fault;

/// Names and values of a response or a trailer section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts about one section"
)]
pub struct Fields {
    lines: Vec<u8>,
    /// The application's own reason phrase, which HTTP/1.1 says before the fields; empty: the registered one.
    pub reason: Vec<u8>,
    /// `Content-Length` as the application announced it.
    pub content_length: Option<u64>,
    /// The application asked for the connection to be closed.
    pub close: bool,
    /// There is a `date` among the lines.
    pub has_date: bool,
    /// There is a `server` among the lines.
    pub has_server: bool,
    /// There is a `content-type` among the lines.
    pub has_content_type: bool,
}

impl Fields {
    /// No fields; allocates nothing.
    pub const EMPTY: Self = Self {
        lines: Vec::new(),
        reason: Vec::new(),
        content_length: None,
        close: false,
        has_date: false,
        has_server: false,
        has_content_type: false,
    };

    /// Adds a field; its value is trimmed of white space at both ends.
    ///
    /// # Errors
    /// [`Fault::ResponseFieldName`] if `name` is not a token, [`Fault::ResponseFieldValue`] if `value` has
    /// a control byte other than a tab, [`Fault::ResponseLength`] for a `Content-Length` that is not a
    /// number or contradicts an earlier one, [`Fault::ResponseConnectionField`] for a field that is for one
    /// connection, other than `connection` with `close` and `keep-alive` (RFC 9110 §7.6.1). The section is as
    /// it was, but that a `close` among the options of `connection` holds.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        let start = self.lines.len();
        let added = name.len().saturating_add(value.len()).saturating_add(4);
        // A few fields are expected after the first: they do not each move what is there.
        let expected = if start == 0 { added.max(128) } else { added };
        self.lines.reserve(expected);
        self.lines.extend(name.iter().copied().map(lowered));
        let is_name = !name.is_empty() && !self.lines.get(start..).unwrap_or_default().contains(&0);
        if !is_name || !is_value(value) {
            self.lines.truncate(start);
            return Err(if is_name {
                Fault::ResponseFieldValue
            } else {
                Fault::ResponseFieldName
            });
        }
        let value = value.trim_ascii();
        match self.lines.get(start..).unwrap_or_default() {
            b"content-length" => {
                let length = parse_decimal(value).ok_or(Fault::ResponseLength)?;
                if self.content_length.is_some_and(|earlier| earlier != length) {
                    return Err(Fault::ResponseLength);
                }
                self.content_length = Some(length);
                self.lines.truncate(start);
                return Ok(());
            }
            b"connection" => {
                self.lines.truncate(start);
                return self.push_connection(value);
            }
            b"transfer-encoding" | b"keep-alive" | b"te" | b"upgrade" | b"proxy-connection" => {
                self.lines.truncate(start);
                return Err(Fault::ResponseConnectionField);
            }
            b"date" => self.has_date = true,
            b"server" => self.has_server = true,
            b"content-type" => self.has_content_type = true,
            _ => {}
        }
        self.lines.extend_from_slice(b": ");
        self.lines.extend_from_slice(value);
        self.lines.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// `close` can be granted and `keep-alive` is; other options name fields that are not the application's.
    fn push_connection(&mut self, value: &[u8]) -> Result<(), Fault> {
        let mut outcome = Ok(());
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            if option.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if !option.is_empty() && !option.eq_ignore_ascii_case(b"keep-alive") {
                outcome = Err(Fault::ResponseConnectionField);
            }
        }
        outcome
    }

    /// Empties the section and keeps its memory.
    pub fn clear(&mut self) {
        let mut lines = core::mem::take(&mut self.lines);
        lines.clear();
        *self = Self {
            lines,
            ..Self::default()
        };
    }

    /// The field lines, each ended by CRLF.
    #[inline]
    pub fn lines(&self) -> &[u8] {
        &self.lines
    }

    /// Names and values, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.lines.split(|&byte| byte == b'\n').filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (name, rest) = line.split_at_checked(colon)?;
            Some((name, rest.get(1..)?.trim_ascii()))
        })
    }

    /// Whether there is nothing to say beyond what every response says.
    #[inline]
    pub fn adds_nothing(&self) -> bool {
        self.lines.is_empty()
            && self.content_length.is_none()
            && !self.close
            && self.reason.is_empty()
    }

    /// Whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Of each byte that may stand in a token its lower-case form, and 0 for every other.
const LOWERED: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        #[expect(
            clippy::indexing_slicing,
            clippy::cast_possible_truncation,
            reason = "evaluated at compile time, where a mistake is a compile error"
        )]
        if is_token_byte(byte as u8) {
            table[byte] = (byte as u8).to_ascii_lowercase();
        }
        byte += 1;
    }
    table
};

fn lowered(byte: u8) -> u8 {
    LOWERED.get(usize::from(byte)).copied().unwrap_or(0)
}

/// Whether `bytes` is a token (RFC 9110 §5.6.2).
pub fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&byte| lowered(byte) != 0)
}

/// Whether `bytes` can be a field value (RFC 9110 §5.5), `obs-text` included.
///
/// No byte ends the loop, so that the compiler makes vectors of it: a response has hundreds of bytes of values.
pub fn is_value(bytes: &[u8]) -> bool {
    let refused = |found, &byte| found | u8::from(!is_value_byte(byte));
    bytes.iter().fold(0, refused) == 0
}

/// Whether `byte` may stand in a token (RFC 9110 §5.6.2, `tchar`).
#[inline]
pub const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
}

/// Whether `byte` may stand in a field value (RFC 9110 §5.5), `obs-text` included.
#[inline]
pub const fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

/// Fields that frame, route, authenticate or reinterpret a message that is already being processed
/// (RFC 9110 §6.5.1).
pub fn is_forbidden_trailer(name: &[u8]) -> bool {
    const FORBIDDEN: [&[u8]; 22] = [
        b"authorization",
        b"cache-control",
        b"connection",
        b"content-encoding",
        b"content-length",
        b"content-range",
        b"content-type",
        b"cookie",
        b"expect",
        b"host",
        b"keep-alive",
        b"max-forwards",
        b"pragma",
        b"proxy-authorization",
        b"proxy-connection",
        b"range",
        b"set-cookie",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"x-forwarded-for",
    ];
    FORBIDDEN
        .iter()
        .any(|forbidden| name.eq_ignore_ascii_case(forbidden))
}

/// A run of decimal digits that fits 64 bits; no sign, no space, no empty run.
pub fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, &byte| {
        if !byte.is_ascii_digit() {
            return None;
        }
        number
            .checked_mul(10)?
            .checked_add(u64::from(byte.wrapping_sub(b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_would_split_an_answer() {
        let mut fields = Fields::default();
        assert_eq!(
            fields.push(b"x", b"a\r\nset-cookie: b"),
            Err(Fault::ResponseFieldValue)
        );
        assert_eq!(fields.push(b"x\r\ny", b"a"), Err(Fault::ResponseFieldName));
        assert_eq!(fields.push(b"", b"a"), Err(Fault::ResponseFieldName));
        assert_eq!(fields.push(b"x", b"a\0"), Err(Fault::ResponseFieldValue));
        assert_eq!(fields.push(b"x\0", b"a\0"), Err(Fault::ResponseFieldName));
        assert!(fields.is_empty());
        fields.push(b"X-A", b"b").expect("valid");
        assert_eq!(fields.push(b"x\0", b"a"), Err(Fault::ResponseFieldName));
        assert_eq!(fields.push(b"x", b"a\n"), Err(Fault::ResponseFieldValue));
        assert_eq!(fields.lines(), b"x-a: b\r\n");
    }

    #[test]
    fn takes_framing_fields_out_of_the_text() {
        let mut fields = Fields::default();
        fields.push(b"Content-Length", b"12").expect("a number");
        fields
            .push(b"Connection", b"keep-alive, Close")
            .expect("a list");
        assert_eq!(
            (fields.lines(), fields.content_length, fields.close),
            (&b""[..], Some(12), true)
        );
        assert_eq!(
            fields.push(b"content-length", b"13"),
            Err(Fault::ResponseLength)
        );
        assert_eq!(
            fields.push(b"content-length", b"+12"),
            Err(Fault::ResponseLength)
        );
    }

    #[test]
    fn refuses_what_is_for_one_connection() {
        for (name, value) in [
            ("Transfer-Encoding", "chunked"),
            ("Transfer-Encoding", "identity"),
            ("Keep-Alive", "timeout=5"),
            ("TE", "trailers"),
            ("Upgrade", "h2c"),
            ("Proxy-Connection", "close"),
            ("Connection", "upgrade"),
            ("Connection", "x-hop, close"),
        ] {
            let mut fields = Fields::default();
            fields.push(b"x-a", b"b").expect("a field");
            let pushed = fields.push(name.as_bytes(), value.as_bytes());
            assert_eq!(pushed, Err(Fault::ResponseConnectionField), "{name}");
            assert_eq!(fields.lines(), b"x-a: b\r\n", "{name}");
            assert_eq!(fields.close, value.contains(", close"), "{name}");
        }
        for value in ["keep-alive", "Close", "close, keep-alive", ""] {
            let mut fields = Fields::default();
            fields
                .push(b"connection", value.as_bytes())
                .expect("granted");
            assert_eq!(fields.lines(), b"");
        }
    }

    #[test]
    fn gives_back_what_was_put_in() {
        let mut fields = Fields::default();
        fields.push(b"X-A", b" b: c ").expect("valid");
        fields.push(b"Set-Cookie", b"d").expect("valid");
        let pairs: Vec<_> = fields.iter().collect();
        assert_eq!(pairs, [(&b"x-a"[..], &b"b: c"[..]), (b"set-cookie", b"d")]);
    }

    #[test]
    fn a_byte_is_judged_alike_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            for length in [1, 2, 15, 16, 17, 31, 32, 33, 100] {
                for at in 0..length {
                    let mut text = [b'a'; 100];
                    text[at] = byte;
                    let text = &text[..length];
                    assert_eq!(is_token(text), is_token_byte(byte), "{byte} {length} {at}");
                    assert_eq!(is_value(text), is_value_byte(byte), "{byte} {length} {at}");
                }
            }
        }
        assert!(!is_token(b"") && is_value(b""));
    }

    #[test]
    fn decimals_that_overflow_or_carry_signs_are_none() {
        assert_eq!(parse_decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in [
            &b"18446744073709551616"[..],
            b"",
            b"+1",
            b"-1",
            b" 1",
            b"1_0",
            b"0x1",
        ] {
            assert_eq!(parse_decimal(bad), None);
        }
    }
}
