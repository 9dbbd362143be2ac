//! The header of the PROXY protocol, versions 1 and 2 (`HAProxy`, `doc/proxy-protocol.txt`): what a proxy that passes on bytes
//! says of its client, before the first byte of TLS or HTTP.
//!
//! In: the first bytes of a connection. Out: how many of them are the header, and the two addresses in it. Records behind the
//! addresses of version 2 (TLVs) are skipped.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::str::FromStr;

/// Bytes of a header at most. Origin: 16 and 36 of addresses in version 2, the rest for its records; nginx takes as many.
pub const PROXY_HEADER_BYTES_MAX: usize = 4096;

/// Bytes of a header of version 1 at most, its line end included (§2.1).
const LINE_BYTES_MAX: usize = 107;
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of version 2 before the addresses.
const FIXED_BYTES: usize = 16;

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The beginning of a header: all bytes so far belong to it.
    Partial,
    /// A whole header.
    Complete {
        /// How many bytes belong to it.
        length: usize,
        /// Who is connected.
        ends: Ends,
    },
    /// No header.
    Invalid,
}

/// Who is connected to whom, in a header's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// The proxy asks for itself: it is the client.
    Connection,
    /// The proxy does not name the client, which is not the proxy all the same: the addresses of the connection stand for it.
    Unnamed,
    /// The client has no internet address.
    Local,
    /// Of a client of TCP.
    Internet {
        /// The client.
        source: SocketAddr,
        /// The address that it has reached.
        destination: SocketAddr,
    },
}

/// Reads the first `bytes` of a connection.
pub fn read_proxy_header(bytes: &[u8]) -> Progress {
    if bytes.starts_with(SIGNATURE) {
        return read_binary(bytes);
    }
    if bytes.starts_with(b"PROXY ") {
        return read_line(bytes);
    }
    if SIGNATURE.starts_with(bytes) || b"PROXY ".starts_with(bytes) {
        return Progress::Partial;
    }
    Progress::Invalid
}

/// §2.1: `PROXY TCP4 SOURCE DESTINATION PORT PORT`, fields between single spaces, ended by CR LF.
fn read_line(bytes: &[u8]) -> Progress {
    let seen = bytes.get(..LINE_BYTES_MAX).unwrap_or(bytes);
    let Some(end) = seen.iter().position(|&byte| byte == b'\n') else {
        return if bytes.len() < LINE_BYTES_MAX {
            Progress::Partial
        } else {
            Progress::Invalid
        };
    };
    let line = seen
        .get(..end)
        .and_then(|line| line.strip_suffix(b"\r"))
        .and_then(|line| core::str::from_utf8(line).ok());
    match line.and_then(ends_of_line) {
        Some(ends) => Progress::Complete {
            length: end.saturating_add(1),
            ends,
        },
        None => Progress::Invalid,
    }
}

fn ends_of_line(line: &str) -> Option<Ends> {
    let mut fields = line.strip_prefix("PROXY ")?.split(' ');
    let family = fields.next()?;
    if family == "UNKNOWN" {
        // Whatever stands behind it is ignored.
        return Some(Ends::Unnamed);
    }
    let (source, destination) = (fields.next()?, fields.next()?);
    let ports = (port(fields.next()?)?, port(fields.next()?)?);
    let addresses = match family {
        "TCP4" => pair::<Ipv4Addr>(source, destination)?,
        "TCP6" => pair::<Ipv6Addr>(source, destination)?,
        _ => return None,
    };
    fields.next().is_none().then_some(Ends::Internet {
        source: SocketAddr::new(addresses.0, ports.0),
        destination: SocketAddr::new(addresses.1, ports.1),
    })
}

fn pair<T: FromStr + Into<IpAddr>>(source: &str, destination: &str) -> Option<(IpAddr, IpAddr)> {
    let address = |text: &str| text.parse::<T>().ok().map(Into::into);
    Some((address(source)?, address(destination)?))
}

/// Digits alone, without leading zeros (§2.1).
fn port(text: &str) -> Option<u16> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = text == "0" || !text.starts_with('0');
    text.parse().ok().filter(|_| is_plain && is_short)
}

/// §2.2: a signature, version and command, family, length, addresses, records.
fn read_binary(bytes: &[u8]) -> Progress {
    let Some(&[command, family, high, low]) = bytes
        .get(SIGNATURE.len()..FIXED_BYTES)
        .and_then(|fixed| fixed.first_chunk::<4>())
    else {
        return Progress::Partial;
    };
    let length = FIXED_BYTES.saturating_add(usize::from(u16::from_be_bytes([high, low])));
    // Version 2; LOCAL or PROXY.
    if !matches!(command, 0x20 | 0x21) || length > PROXY_HEADER_BYTES_MAX {
        return Progress::Invalid;
    }
    let Some(rest) = bytes.get(FIXED_BYTES..length) else {
        return Progress::Partial;
    };
    let ends = match (command, family) {
        // A receiver takes the addresses of the connection, whatever the rest says.
        (0x20, _) => Some(Ends::Connection),
        (0x21, 0x00) => Some(Ends::Unnamed),
        (0x21, 0x11) => rest
            .first_chunk::<12>()
            .map(|&[a, b, c, d, e, f, g, h, ports @ ..]| {
                ends_of(
                    Ipv4Addr::new(a, b, c, d).into(),
                    Ipv4Addr::new(e, f, g, h).into(),
                    ports,
                )
            }),
        (0x21, 0x21) => rest.split_first_chunk::<16>().and_then(|(source, rest)| {
            let (destination, rest) = rest.split_first_chunk::<16>()?;
            Some(ends_of(
                Ipv6Addr::from(*source).into(),
                Ipv6Addr::from(*destination).into(),
                *rest.first_chunk()?,
            ))
        }),
        (0x21, 0x31) if rest.len() >= 216 => Some(Ends::Local),
        // Datagrams, families that do not exist, addresses that are cut.
        _ => None,
    };
    ends.map_or(Progress::Invalid, |ends| Progress::Complete {
        length,
        ends,
    })
}

fn ends_of(source: IpAddr, destination: IpAddr, ports: [u8; 4]) -> Ends {
    let [a, b, c, d] = ports;
    Ends::Internet {
        source: SocketAddr::new(source, u16::from_be_bytes([a, b])),
        destination: SocketAddr::new(destination, u16::from_be_bytes([c, d])),
    }
}

#[cfg(test)]
mod tests;
