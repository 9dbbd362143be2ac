//! The request that asks for a WebSocket, and the response that grants it (§4.2, RFC 8441 §5).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use citius_http::fields::is_token;
use citius_http::{BodyLength, Fields, Head, Method, Status, Version};

use crate::deflate::{BITS_MAX, BITS_MIN};

/// What is appended to the client's key before it is hashed (§1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// What carries the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The whole connection, after a 101.
    Http1,
    /// A stream, after a 200.
    Http2,
}

/// A request that asks for a WebSocket, as far as its response depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opening {
    /// What the response has to say to show that it understands (§4.2.2); HTTP/2 needs no such proof.
    proof: Option<String>,
    /// The first offer of permessage-deflate that can be met.
    deflate: Option<Offer>,
    /// The subprotocols the client speaks, best first.
    pub protocols: Vec<String>,
}

/// An offer of permessage-deflate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offer {
    /// The logarithm of our window, if it names one.
    bits: Option<u8>,
}

/// Why a request for a WebSocket is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another version of the protocol than 13.
    Version,
    /// No `Sec-WebSocket-Key`, several, or one that is not sixteen bytes in base64.
    Key,
    /// A subprotocol that is not a token.
    Protocol,
    /// Something that was sent before the response, or a connection that takes no more.
    Pipelined,
    /// A stream whose client has ended its side already: no message can come.
    Ended,
    /// No request for one, where there is nothing else.
    Expected,
}

impl Refusal {
    /// The status that says so.
    pub const fn status(self) -> Status {
        match self {
            Self::Version | Self::Expected => Status::from_const(426),
            Self::Key | Self::Protocol | Self::Pipelined | Self::Ended => Status::from_const(400),
        }
    }

    /// What is wrong: lower case, no full stop.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Version => "expected Sec-WebSocket-Version: 13",
            Self::Key => "expected one Sec-WebSocket-Key of sixteen bytes in base64",
            Self::Protocol => "Sec-WebSocket-Protocol is not a list of tokens",
            Self::Pipelined => "nothing may follow a request for a WebSocket before it is granted",
            Self::Ended => "the stream has ended before the WebSocket was accepted",
            Self::Expected => "expected a request for a WebSocket",
        }
    }

    /// What the response says besides.
    pub fn fields(self) -> Fields {
        let mut fields = Fields::default();
        if self.status().code() == 426 {
            // `push` fails only for invalid names and values; these are valid.
            let _ = fields.push(b"sec-websocket-version", b"13");
        }
        fields
    }
}

/// What both sides have agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agreed {
    /// Messages may be compressed: the logarithm of the window that the client's side has.
    pub deflate_bits: Option<u8>,
}

impl Opening {
    /// What kind of transport `head` asks a WebSocket of; `None` if it asks for something else.
    #[inline]
    pub fn transport(head: &Head) -> Option<Transport> {
        if !head.asks_upgrade && head.method != Method::Connect {
            return None;
        }
        Self::transport_named(head)
    }

    #[cold]
    fn transport_named(head: &Head) -> Option<Transport> {
        if matches!(head.version, Version::Http2 | Version::Http3) {
            let is_asked =
                head.method == Method::Connect && head.field(b":protocol") == Some(b"websocket");
            return is_asked.then_some(Transport::Http2);
        }
        let is_asked = head.version == Version::Http11
            && head.method == Method::Get
            && head.body == BodyLength::None
            && options(head, b"upgrade").any(|name| name.eq_ignore_ascii_case(b"websocket"));
        is_asked.then_some(Transport::Http1)
    }

    /// Reads what `head` asks for, which [`transport`](Self::transport) has told apart.
    ///
    /// # Errors
    /// What to answer instead.
    pub fn read(head: &Head, transport: Transport, permits_deflate: bool) -> Result<Self, Refusal> {
        if only(head, b"sec-websocket-version") != Some(b"13") {
            return Err(Refusal::Version);
        }
        let proof = match transport {
            Transport::Http2 => None,
            Transport::Http1 => {
                let key = only(head, b"sec-websocket-key").ok_or(Refusal::Key)?;
                Some(proof_of(key).ok_or(Refusal::Key)?)
            }
        };
        let mut protocols = Vec::new();
        for name in options(head, b"sec-websocket-protocol") {
            let name = core::str::from_utf8(name).map_err(|_| Refusal::Protocol)?;
            if !is_token(name.as_bytes()) {
                return Err(Refusal::Protocol);
            }
            protocols.push(name.into());
        }
        let deflate = if permits_deflate {
            lines(head, b"sec-websocket-extensions").find_map(deflate_offer)
        } else {
            None
        };
        Ok(Self {
            proof,
            deflate,
            protocols,
        })
    }

    /// Adds what the response has to say to `fields`; `protocol` is the one that was chosen.
    ///
    /// # Errors
    /// [`Fault`](citius_http::Fault) of a protocol that cannot stand in a field.
    pub fn accept(
        &self,
        protocol: Option<&str>,
        fields: &mut Fields,
    ) -> Result<Agreed, citius_http::Fault> {
        if let Some(proof) = &self.proof {
            fields.push(b"sec-websocket-accept", proof.as_bytes())?;
        }
        if let Some(protocol) = protocol {
            fields.push(b"sec-websocket-protocol", protocol.as_bytes())?;
        }
        let Some(Offer { bits }) = self.deflate else {
            return Ok(Agreed::default());
        };
        let agreed = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        let extension = match bits {
            None => String::from(agreed),
            Some(bits) => format!("{agreed}; server_max_window_bits={bits}"),
        };
        fields.push(b"sec-websocket-extensions", extension.as_bytes())?;
        Ok(Agreed {
            deflate_bits: Some(bits.unwrap_or(BITS_MAX)),
        })
    }
}

/// The proof that a key was understood (§4.2.2); `None` if it is no key.
fn proof_of(key: &[u8]) -> Option<String> {
    let mut decoded = [0; 18];
    if STANDARD.decode_slice(key, &mut decoded) != Ok(16) {
        return None;
    }
    let mut hash = sha1_smol::Sha1::new();
    hash.update(key);
    hash.update(GUID);
    Some(STANDARD.encode(hash.digest().bytes()))
}

/// The values of all lines of a field.
fn lines<'h>(head: &'h Head, name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
    head.fields()
        .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// The value of a field that must stand there once.
fn only<'h>(head: &'h Head, name: &'h [u8]) -> Option<&'h [u8]> {
    let mut values = lines(head, name);
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

/// The items of a list, over all lines of a field.
fn options<'h>(head: &'h Head, name: &'h [u8]) -> impl Iterator<Item = &'h [u8]> {
    lines(head, name)
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|item| !item.is_empty())
}

/// The first offer in `value` that can be met (RFC 7692 §7.1).
fn deflate_offer(value: &[u8]) -> Option<Offer> {
    let mut offers = value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    offers.find_map(|offer| {
        let mut parts = offer.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        if parts.next() != Some(b"permessage-deflate") {
            return None;
        }
        let mut bits = None;
        let mut seen = [false; 4];
        for part in parts {
            let mut sides = part.splitn(2, |&byte| byte == b'=').map(<[u8]>::trim_ascii);
            let (name, value) = (sides.next()?, sides.next().map(unquoted));
            let (place, is_fine) = match name {
                b"server_no_context_takeover" => (0, value.is_none()),
                b"client_no_context_takeover" => (1, value.is_none()),
                b"server_max_window_bits" => {
                    bits = value.and_then(window_bits);
                    // zlib cannot make the smallest window, eight bits; another offer may do.
                    (2, bits.is_some_and(|bits| bits >= BITS_MIN))
                }
                b"client_max_window_bits" => {
                    (3, value.is_none_or(|value| window_bits(value).is_some()))
                }
                _ => return None,
            };
            let slot = seen.get_mut(place)?;
            if !is_fine || core::mem::replace(slot, true) {
                return None;
            }
        }
        Some(Offer { bits })
    })
}

/// A token that may stand in quotes (§9.1).
fn unquoted(value: &[u8]) -> &[u8] {
    value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""))
        .unwrap_or(value)
}

/// A number from 8 to 15 without leading zeros (RFC 7692 §7.1.2).
fn window_bits(value: &[u8]) -> Option<u8> {
    match value {
        [digit @ b'8'..=b'9'] => Some(digit.wrapping_sub(b'0')),
        [b'1', digit @ b'0'..=b'5'] => Some(digit.wrapping_sub(b'0').wrapping_add(10)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&str, &str)]) -> Head {
        let mut head = Head {
            asks_upgrade: true,
            ..Head::default()
        };
        for (name, value) in fields {
            let mut push = |text: &str| {
                let start = head.bytes.len() as u32;
                head.bytes.extend_from_slice(text.as_bytes());
                let end = head.bytes.len() as u32;
                citius_http::head::Span { start, end }
            };
            let (name, value) = (push(name), push(value));
            head.fields
                .push(citius_http::head::FieldSpan { name, value });
        }
        head
    }

    const KEY: (&str, &str) = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==");
    const VERSION: (&str, &str) = ("Sec-WebSocket-Version", "13");

    fn read(fields: &[(&str, &str)]) -> Result<Opening, Refusal> {
        Opening::read(&head(fields), Transport::Http1, true)
    }

    #[test]
    fn the_example_of_the_rfc() {
        let head = head(&[
            ("Upgrade", "WebSocket"),
            KEY,
            ("Sec-WebSocket-Protocol", "chat, superchat"),
            VERSION,
        ]);
        assert_eq!(Opening::transport(&head), Some(Transport::Http1));
        let opening = Opening::read(&head, Transport::Http1, true).expect("valid");
        assert_eq!(opening.protocols, ["chat", "superchat"]);
        let mut fields = Fields::default();
        let agreed = opening.accept(Some("chat"), &mut fields);
        assert_eq!(agreed, Ok(Agreed { deflate_bits: None }));
        let said: Vec<_> = fields.iter().collect();
        assert_eq!(
            said,
            [
                (
                    &b"sec-websocket-accept"[..],
                    &b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="[..]
                ),
                (b"sec-websocket-protocol", b"chat"),
            ]
        );
    }

    #[test]
    fn what_is_no_request_for_one() {
        let upgrade = ("Upgrade", "websocket");
        let asks = |change: fn(&mut Head)| {
            let mut head = head(&[upgrade]);
            change(&mut head);
            Opening::transport(&head)
        };
        assert_eq!(asks(|_| {}), Some(Transport::Http1));
        assert_eq!(asks(|head| head.asks_upgrade = false), None);
        assert_eq!(asks(|head| head.method = Method::Post), None);
        assert_eq!(asks(|head| head.version = Version::Http10), None);
        assert_eq!(asks(|head| head.body = BodyLength::Exact(1)), None);
        assert_eq!(asks(|head| head.version = Version::Http2), None);
        assert_eq!(Opening::transport(&head(&[("Upgrade", "h2c")])), None);
        let listed = head(&[("Upgrade", "h2c, websocket")]);
        assert_eq!(Opening::transport(&listed), Some(Transport::Http1));
        let mut extended = head(&[(":protocol", "websocket"), VERSION]);
        (extended.version, extended.method) = (Version::Http2, Method::Connect);
        assert_eq!(Opening::transport(&extended), Some(Transport::Http2));
        assert!(Opening::read(&extended, Transport::Http2, true).is_ok());
    }

    #[test]
    fn keys_and_versions_are_checked() {
        assert_eq!(read(&[KEY]), Err(Refusal::Version));
        assert_eq!(
            read(&[KEY, ("sec-websocket-version", "8")]),
            Err(Refusal::Version)
        );
        assert_eq!(read(&[KEY, VERSION, VERSION]), Err(Refusal::Version));
        assert_eq!(read(&[VERSION]), Err(Refusal::Key));
        assert_eq!(read(&[VERSION, KEY, KEY]), Err(Refusal::Key));
        for key in [
            "",
            "short",
            "dGhlIHNhbXBsZSBub25jZQ",
            "dGhlIHNhbXBsZSBub25jZSE=",
        ] {
            assert_eq!(
                read(&[VERSION, ("sec-websocket-key", key)]),
                Err(Refusal::Key)
            );
        }
        let protocol = ("sec-websocket-protocol", "a b");
        assert_eq!(read(&[VERSION, KEY, protocol]), Err(Refusal::Protocol));
        assert_eq!(Refusal::Version.status().code(), 426);
        assert_eq!(
            Refusal::Version.fields().lines(),
            b"sec-websocket-version: 13\r\n"
        );
        assert!(Refusal::Key.fields().is_empty());
    }

    #[test]
    fn offers_of_compression_are_met_if_they_can_be() {
        let met = |value: &str| {
            let opening =
                read(&[KEY, VERSION, ("Sec-WebSocket-Extensions", value)]).expect("valid");
            let mut fields = Fields::default();
            let agreed = opening.accept(None, &mut fields).expect("valid");
            let said = fields
                .iter()
                .find(|(name, _)| *name == b"sec-websocket-extensions")
                .map(|(_, value)| String::from_utf8_lossy(value).into_owned());
            (agreed.deflate_bits, said)
        };
        let plain = "permessage-deflate; server_no_context_takeover; client_no_context_takeover";
        for offer in [
            "permessage-deflate",
            "permessage-deflate; client_max_window_bits",
            "permessage-deflate;client_max_window_bits=\"10\"; server_no_context_takeover",
            "x-webkit-deflate-frame, permessage-deflate",
            "permessage-deflate; server_max_window_bits=8, permessage-deflate",
        ] {
            assert_eq!(met(offer), (Some(15), Some(plain.into())), "{offer}");
        }
        let narrow = alloc::format!("{plain}; server_max_window_bits=9");
        assert_eq!(
            met("permessage-deflate; server_max_window_bits=9"),
            (Some(9), Some(narrow))
        );
        for offer in [
            "",
            "permessage-bzip2",
            "permessage-deflate; server_max_window_bits",
            "permessage-deflate; server_max_window_bits=8",
            "permessage-deflate; server_max_window_bits=16",
            "permessage-deflate; server_max_window_bits=010",
            "permessage-deflate; client_max_window_bits=7",
            "permessage-deflate; server_no_context_takeover=1",
            "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
            "permessage-deflate; mode=best",
        ] {
            assert_eq!(met(offer), (None, None), "{offer}");
        }
        let offered = head(&[
            KEY,
            VERSION,
            ("sec-websocket-extensions", "permessage-deflate"),
        ]);
        let refused = Opening::read(&offered, Transport::Http1, false).expect("valid");
        assert_eq!(
            refused.accept(None, &mut Fields::default()),
            Ok(Agreed::default())
        );
    }
}
