//! The content of a response: whether there is any, and how long it is (RFC 9110 §6.4, §8.6).
//!
//! In: a status, a request method, a declared length, the bytes that an application sends. Out: what the framing has
//! to say, or the application's [`Fault`]. HTTP/1.1 and HTTP/2 differ in how they frame content, not in these rules;
//! nothing here knows a framing. Tests: here, `vectors/h1/responses/` and `citius-h2/src/tests/exchange.rs`.

use crate::fields::is_value;
use crate::{Fault, ResponseHead, Status};

impl Status {
    /// Whether no content may follow: 1xx, 204 and 304 end with their head (RFC 9110 §15), a 205 must not have any
    /// (§15.3.6).
    #[inline]
    pub const fn refuses_content(self) -> bool {
        self.has_no_body() || self.code() == 205
    }
}

impl ResponseHead<'_> {
    /// Checks the head of a final response; `is_known` if its media type was checked before.
    ///
    /// # Errors
    /// [`Fault::ResponseStatus`] for an informational status, [`Fault::ResponseFieldValue`] for a media type that is
    /// no field value.
    #[inline]
    pub fn check_final(&self, is_known: bool) -> Result<(), Fault> {
        if self.status.is_informational() {
            return Err(Fault::ResponseStatus);
        }
        if is_known {
            return Ok(());
        }
        self.check_media_type()
    }

    /// Checks the head of an informational response; 101 is none that an application may send.
    ///
    /// # Errors
    /// As for [`check_final`](Self::check_final), with `ResponseStatus` for any other status.
    pub fn check_informational(&self) -> Result<(), Fault> {
        if !self.status.is_informational() || self.status.code() == 101 {
            return Err(Fault::ResponseStatus);
        }
        self.check_media_type()
    }

    #[inline]
    fn check_media_type(&self) -> Result<(), Fault> {
        let media_type = self.content_type.unwrap_or_default();
        if is_value(media_type) {
            Ok(())
        } else {
            Err(Fault::ResponseFieldValue)
        }
    }

    /// The `content-length` of a response whose content of `n_bytes` is sent with its head; `None`: the head has none.
    /// `without_content` if none is sent: the request was HEAD, or the status [refuses it](Status::refuses_content).
    ///
    /// # Errors
    /// [`Fault::ResponseLength`] if the application declared another length than it sends.
    #[inline]
    pub fn length_of_whole(
        &self,
        n_bytes: u64,
        without_content: bool,
    ) -> Result<Option<u64>, Fault> {
        let declared = self.fields.content_length;
        match self.status.code() {
            204 => Ok(None),
            205 => Ok(Some(0)),
            // RFC 9110 §15.4.5: that of the content that a 200 would have had.
            304 => Ok(declared),
            _ => {
                let length = declared.unwrap_or(n_bytes);
                if length != n_bytes && !without_content {
                    return Err(Fault::ResponseLength);
                }
                Ok(Some(length))
            }
        }
    }

    /// The `content-length` of a response whose content follows its head; `None`: the head has none.
    pub fn length_of_streamed(&self) -> Option<u64> {
        match self.status.code() {
            204 => None,
            205 => Some(0),
            _ => self.fields.content_length,
        }
    }
}

/// Bytes that a response has declared by `content-length` and not sent yet; any number without a declaration.
///
/// This is the only place that compares what an application declares with what it sends. HTTP/1.1, HTTP/2 and the
/// compressor each keep one for a response whose content follows its head, and report the fault to the sender of the
/// action. A gateway keeps one where its interface wants more than that fault: ASGI's `send` raises, WSGI's content is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared(Option<u64>);

impl Declared {
    /// Of a response with this `content-length`.
    #[inline]
    pub const fn new(content_length: Option<u64>) -> Self {
        Self(content_length)
    }

    /// Counts `n_bytes` that are about to be sent.
    ///
    /// # Errors
    /// [`Fault::ResponseLength`]: they are more than declared, and are not counted.
    #[inline]
    pub fn count(&mut self, n_bytes: u64) -> Result<(), Fault> {
        if let Some(left) = &mut self.0 {
            *left = left.checked_sub(n_bytes).ok_or(Fault::ResponseLength)?;
        }
        Ok(())
    }

    /// Counts as many of `n_bytes` as are declared, and returns how many that are.
    #[inline]
    pub fn count_most(&mut self, n_bytes: u64) -> u64 {
        let most = self.0.map_or(n_bytes, |left| left.min(n_bytes));
        self.0 = self.0.map(|left| left.saturating_sub(most));
        most
    }

    /// Bytes that are still to be sent; `None` without a declaration.
    #[inline]
    pub const fn left(self) -> Option<u64> {
        self.0
    }

    /// The application has sent all of its content.
    ///
    /// # Errors
    /// [`Fault::ResponseLength`]: less than declared.
    #[inline]
    pub fn complete(self) -> Result<(), Fault> {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(_) => Err(Fault::ResponseLength),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fields;

    fn head(code: u16, fields: &Fields) -> ResponseHead<'_> {
        ResponseHead {
            status: Status::new(code).expect("a status code"),
            content_type: None,
            fields,
        }
    }

    fn declaring(length: &[u8]) -> Fields {
        let mut fields = Fields::default();
        fields
            .push(b"content-length", length)
            .expect("a valid field");
        fields
    }

    #[test]
    fn lengths_follow_from_status_and_declaration() {
        let (none, seven) = (Fields::EMPTY, declaring(b"7"));
        for (code, fields, whole, streamed) in [
            (200, &none, Ok(Some(5)), None),
            (200, &seven, Err(Fault::ResponseLength), Some(7)),
            (204, &seven, Ok(None), None),
            (205, &seven, Ok(Some(0)), Some(0)),
            (304, &none, Ok(None), None),
            (304, &seven, Ok(Some(7)), Some(7)),
        ] {
            let head = head(code, fields);
            assert_eq!(head.length_of_whole(5, false), whole, "{code}");
            assert_eq!(head.length_of_streamed(), streamed, "{code}");
        }
        assert_eq!(head(200, &seven).length_of_whole(0, true), Ok(Some(7)));
    }

    #[test]
    fn what_is_sent_is_what_was_declared() {
        let mut five = Declared::new(Some(5));
        assert_eq!(five.count(3), Ok(()));
        assert_eq!(five.complete(), Err(Fault::ResponseLength));
        assert_eq!(five.count(3), Err(Fault::ResponseLength));
        assert_eq!(five.count(2), Ok(()));
        assert_eq!(five.complete(), Ok(()));
        let mut four = Declared::new(Some(4));
        assert_eq!((four.count_most(3), four.left()), (3, Some(1)));
        assert_eq!((four.count_most(3), four.left()), (1, Some(0)));
        let mut any = Declared::new(None);
        assert_eq!((any.count_most(9), any.left()), (9, None));
        assert_eq!(any.count(u64::MAX), Ok(()));
        assert_eq!(any.complete(), Ok(()));
    }

    #[test]
    fn heads_that_may_not_be_sent() {
        let none = Fields::EMPTY;
        for (code, is_final, is_informational) in
            [(100, false, true), (101, false, false), (200, true, false)]
        {
            let head = head(code, &none);
            assert_eq!(head.check_final(false).is_ok(), is_final, "{code}");
            assert_eq!(head.check_informational().is_ok(), is_informational);
        }
        let split = ResponseHead {
            content_type: Some(b"a\r\nb: c"),
            ..head(200, &none)
        };
        assert_eq!(split.check_final(false), Err(Fault::ResponseFieldValue));
    }
}
