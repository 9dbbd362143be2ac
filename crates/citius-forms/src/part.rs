//! The header section of one part of a multipart form: bytes in, its name and its file's name out (RFC 7578 §4.2).
//!
//! Names are read as browsers and common clients write them:
//! - Browsers (WHATWG HTML §4.10.22.8) send UTF-8 as it is, and `%22`, `%0D`, `%0A` for the three characters that would
//!   end a name. A backslash they send as it is, Windows paths included.
//! - curl, urllib3 and Go put a backslash before quotes and backslashes. A backslash is therefore an escape before
//!   those two and a character everywhere else.
//! - Some send `filename*` (RFC 8187), which RFC 7578 forbids; where it can be read, it is the name, and otherwise `filename`
//!   is. A part that has neither is refused: other readers take it for a file, and it would be a text here.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use citius_http::fields::is_token;
use citius_http::parameters;
use citius_route::decode;

use crate::{Fault, Limits};

/// What the header section of a part says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The name of the form's field.
    pub name: String,
    /// The name of the file; `None`: the part is a text.
    pub filename: Option<String>,
    /// The media type as it was sent, if it was.
    pub content_type: Option<String>,
    /// All field lines in their order, names in lower case.
    pub fields: Vec<(String, String)>,
}

impl Part {
    /// Reads a header section without the empty line at its end.
    pub(crate) fn read(head: &[u8], limits: &Limits) -> Result<Self, Fault> {
        let mut part = Self::default();
        let mut disposition = None;
        for line in lines(head) {
            let (name, value) = field(line)?;
            match name.as_str() {
                "content-disposition" if disposition.is_some() => return Err(Fault::Disposition),
                "content-disposition" => disposition = Some(value.clone()),
                "content-type" if part.content_type.is_none() => {
                    part.content_type = Some(value.clone());
                }
                "content-transfer-encoding" if !is_identity(&value) => {
                    return Err(Fault::TransferEncoding);
                }
                _ => {}
            }
            part.fields.push((name, value));
        }
        let disposition = disposition.ok_or(Fault::Disposition)?;
        part.read_disposition(&disposition)?;
        let file_name_bytes = part.filename.as_ref().map_or(0, String::len);
        if part.name.len().max(file_name_bytes) > limits.name_bytes_max as usize {
            return Err(Fault::NameTooLong);
        }
        Ok(part)
    }

    fn read_disposition(&mut self, value: &str) -> Result<(), Fault> {
        let is_escaped = |character| matches!(character, '"' | '\\');
        let (kind, parameters) = parameters::split_escaped(value, is_escaped);
        if !kind.eq_ignore_ascii_case("form-data") {
            return Err(Fault::Disposition);
        }
        let (mut name, mut filename, mut extended) = (None, None, None);
        let mut is_file = false;
        for (key, value) in parameters {
            let slot = match key.to_ascii_lowercase().as_str() {
                "name" => &mut name,
                "filename" => &mut filename,
                "filename*" => &mut extended,
                // `filename*0`, `filename*1*`: pieces of a name (RFC 2231 §3).
                other => {
                    is_file |= other.starts_with("filename*");
                    continue;
                }
            };
            // Two readers of such a part could take different ones.
            if slot.replace(value).is_some() {
                return Err(Fault::Disposition);
            }
        }
        self.name = unescape(&name.ok_or(Fault::Disposition)?);
        is_file |= extended.is_some();
        self.filename = extended
            .and_then(|value| extended_value(&value))
            .or_else(|| filename.map(|value| unescape(&value)));
        if is_file && self.filename.is_none() {
            return Err(Fault::FileName);
        }
        Ok(())
    }
}

/// The lines of a header section.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(head).filter(|head| !head.is_empty());
    core::iter::from_fn(move || {
        let text = rest?;
        let end = memchr::memmem::find(text, b"\r\n");
        let (line, after) = text.split_at(end.unwrap_or(text.len()));
        rest = end.and_then(|_| after.get(2..));
        Some(line)
    })
}

/// Name, in lower case, and value of a field line.
fn field(line: &[u8]) -> Result<(String, String), Fault> {
    let colon = memchr::memchr(b':', line).ok_or(Fault::FieldSyntax)?;
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default();
    // Browsers escape line ends and quotes alone: other control characters of a name come as they are.
    let is_broken = value.iter().any(|byte| b"\r\n".contains(byte));
    if !is_token(name) || is_broken {
        return Err(Fault::FieldSyntax);
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    let value = String::from_utf8_lossy(value);
    Ok((name, trim(&value).to_string()))
}

fn is_identity(encoding: &str) -> bool {
    ["7bit", "8bit", "binary"]
        .iter()
        .any(|name| encoding.eq_ignore_ascii_case(name))
}

/// Undoes the three escapes of the WHATWG encoder.
fn unescape(text: &str) -> String {
    if !text.contains('%') {
        return text.to_string();
    }
    text.replace("%22", "\"")
        .replace("%0D", "\r")
        .replace("%0A", "\n")
}

/// `charset'language'percent-encoded` (RFC 8187 §3.2.1); `None` if it is something else.
fn extended_value(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, encoded) = rest.split_once('\'')?;
    let bytes = decode(encoded.as_bytes());
    if charset.eq_ignore_ascii_case("utf-8") {
        return String::from_utf8(bytes.into_owned()).ok();
    }
    let is_latin = charset.eq_ignore_ascii_case("iso-8859-1");
    is_latin.then(|| bytes.iter().copied().map(char::from).collect())
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}
