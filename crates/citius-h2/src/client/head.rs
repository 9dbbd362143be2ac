//! A field section of a response, as it is decoded.

use alloc::vec::Vec;

use citius_http::fields::{is_token, is_value, parse_decimal};

use super::{Fault, Limits};

/// Names and values of fields.
pub type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Fields that speak of a connection, of which HTTP/2 has one for many messages.
const OF_CONNECTION: [&[u8]; 5] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"transfer-encoding",
    b"upgrade",
];

/// Whether a field speaks of a connection.
pub(super) fn is_of_connection(name: &[u8]) -> bool {
    OF_CONNECTION.contains(&name)
}

/// What has been read of a section.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) status: Option<u16>,
    pub(super) fields: Pairs,
    pub(super) content_length: Option<u64>,
    bytes: usize,
    /// The first rule that was broken; the rest is decoded all the same.
    fault: Option<Fault>,
}

impl Section {
    /// Takes a field.
    pub(super) fn take(&mut self, name: &[u8], value: &[u8], limits: &Limits) {
        if self.fault.is_none() {
            self.fault = self.check(name, value, limits).err();
        }
    }

    fn check(&mut self, name: &[u8], value: &[u8], limits: &Limits) -> Result<(), Fault> {
        let size = name.len().saturating_add(value.len()).saturating_add(32);
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > limits.head_bytes_max as usize {
            return Err(Fault::HeadTooLong);
        }
        if name.first() == Some(&b':') {
            return self.pseudo(name, value);
        }
        if self.fields.len() >= limits.fields_max as usize {
            return Err(Fault::TooManyFields);
        }
        let is_lower = !name.iter().any(u8::is_ascii_uppercase);
        let is_trimmed = value.trim_ascii().len() == value.len();
        if !is_token(name) || !is_lower || !is_trimmed || !is_value(value) {
            return Err(Fault::FieldSyntax);
        }
        if is_of_connection(name) {
            return Err(Fault::FieldOfConnection);
        }
        if name == b"content-length" {
            let length = parse_decimal(value).ok_or(Fault::ContentLength)?;
            if self.content_length.replace(length).is_some() {
                return Err(Fault::ContentLength);
            }
        }
        self.fields.push((name.to_vec(), value.to_vec()));
        Ok(())
    }

    fn pseudo(&mut self, name: &[u8], value: &[u8]) -> Result<(), Fault> {
        if name != b":status" || self.status.is_some() || !self.fields.is_empty() {
            return Err(Fault::PseudoField);
        }
        let status = match value {
            [b'1'..=b'5', b'0'..=b'9', b'0'..=b'9'] => parse_decimal(value).unwrap_or_default(),
            _ => return Err(Fault::Status),
        };
        self.status = Some(u16::try_from(status).unwrap_or_default());
        Ok(())
    }

    /// The whole section, if it broke no rule.
    pub(super) fn end(self) -> Result<Self, Fault> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self),
        }
    }
}
