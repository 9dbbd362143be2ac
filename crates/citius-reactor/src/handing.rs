//! Datagrams that come to one worker and are for another: it hands them on, over a pair of Unix sockets.
//!
//! A UDP socket has one reader, the newest worker of its slot. What names an older worker in its connection id goes to that
//! one for as long as it drains; what an older worker has read and is not its own goes back. A message is a datagram with what
//! the kernel has told of it. One that does not go is lost, as on the network. Tests: `tests/http3/test_workers.py`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use citius_quic::{EcnCodepoint, From, Origin};

use crate::id::ConnectionId;
use crate::poller::Poller;
use crate::readiness::Readiness;
use crate::system::{Handing, Socket};

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A datagram for the worker that its connection id names.
    Datagram,
    /// A datagram of a client that begins, which the worker that it names does not know: the newest one's.
    Beginning,
    /// A newer worker reads the sockets from now on.
    TakenOver,
}

/// The other workers that a reactor hands datagrams on to, and has them from.
#[derive(Debug, Default)]
pub(crate) struct Handings {
    /// Where a later worker, and then older ones, hand on.
    pub(crate) sources: Vec<Handing>,
    /// What goes back to the newest worker.
    back: Option<Handing>,
    older: Vec<(Origin, Handing)>,
    /// A newer worker reads the sockets.
    pub(crate) is_taken_over: bool,
}

/// Bytes before the datagram: kind, socket, ECN, family, address and port of the sender, whether the receiver's is known, and it.
const HEADER_BYTES: usize = 4 + 16 + 2 + 4 + 1 + 16;

impl Handings {
    pub(crate) fn new(own: Socket, back: (Socket, Socket), older: Vec<(Origin, Socket)>) -> Self {
        let older = older
            .into_iter()
            .map(|(origin, socket)| (origin, Handing::new(socket)));
        Self {
            sources: vec![Handing::new(own), Handing::new(back.0)],
            back: Some(Handing::new(back.1)),
            older: older.collect(),
            is_taken_over: false,
        }
    }

    /// Tells older workers that this one reads the sockets from now on.
    pub(crate) fn take_over(&mut self) {
        self.older
            .retain(|(_, older)| older.hand_on(&[Kind::TakenOver as u8]).is_ok());
    }

    /// Has the poller report room in a socket, which it reads no more if a newer worker does.
    pub(crate) fn watch_for_room(&self, poller: &Poller, socket: &Socket, id: ConnectionId) {
        // Refused only for want of memory; the timers of connections try again.
        let _ = if self.is_taken_over {
            poller.add(socket, id, Readiness::OUT)
        } else {
            poller.modify(socket, id, Readiness::IN | Readiness::OUT)
        };
    }

    /// Hands on a datagram that names `origin`, who is not `ours`; whether it is that worker's to answer.
    pub(crate) fn hand_on(
        &mut self,
        ours: Origin,
        origin: Origin,
        from: &From,
        datagram: &[u8],
    ) -> bool {
        if let Some(at) = self.older.iter().position(|(older, _)| *older == origin) {
            let sent = self.older[at]
                .1
                .hand_on(&message(Kind::Datagram, from, datagram));
            if sent.is_err_and(|error| error != crate::system::Errno::AGAIN) {
                // It has ended.
                self.older.remove(at);
                return false;
            }
            return true;
        }
        let is_newer = ours.slot == origin.slot
            && origin
                .generation
                .wrapping_sub(ours.generation)
                .cast_signed()
                > 0;
        is_newer && self.give_back(Kind::Datagram, from, datagram)
    }

    /// Hands a datagram to the newest worker; whether there is one.
    pub(crate) fn give_back(&self, kind: Kind, from: &From, datagram: &[u8]) -> bool {
        self.back
            .as_ref()
            .is_some_and(|back| back.hand_on(&message(kind, from, datagram)).is_ok())
    }
}

fn message(kind: Kind, from: &From, datagram: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER_BYTES + datagram.len());
    message.extend_from_slice(&[
        kind as u8,
        u8::try_from(from.socket).unwrap_or(u8::MAX),
        from.ecn.map_or(0, |ecn| ecn as u8),
        u8::from(from.remote.is_ipv6()),
    ]);
    message.extend_from_slice(&octets(from.remote.ip()));
    message.extend_from_slice(&from.remote.port().to_be_bytes());
    let scope = match from.remote {
        SocketAddr::V6(remote) => remote.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    message.extend_from_slice(&scope.to_be_bytes());
    message.push(u8::from(from.local.is_some()));
    message.extend_from_slice(&from.local.map_or([0; 16], octets));
    message.extend_from_slice(datagram);
    message
}

/// What a message says: a datagram, unless it is about the sockets.
type Message<'m> = (Kind, Option<(From, &'m [u8])>);

/// What a message says; `None`: it is none of ours.
pub(crate) fn read_message(message: &[u8]) -> Option<Message<'_>> {
    let kind = match *message.first()? {
        0 => Kind::Datagram,
        1 => Kind::Beginning,
        2 => return Some((Kind::TakenOver, None)),
        _ => return None,
    };
    let (header, datagram) = message.split_at_checked(HEADER_BYTES)?;
    let is_ipv6 = header[3] == 1;
    let port = u16::from_be_bytes([header[20], header[21]]);
    let scope = u32::from_be_bytes(header[22..26].try_into().ok()?);
    let remote = match address(header[4..20].try_into().ok()?, is_ipv6) {
        IpAddr::V4(ip) => SocketAddr::from((ip, port)),
        IpAddr::V6(ip) => SocketAddrV6::new(ip, port, 0, scope).into(),
    };
    let local: [u8; 16] = header[27..43].try_into().ok()?;
    let from = From {
        remote,
        local: (header[26] == 1).then(|| address(local, is_ipv6)),
        ecn: EcnCodepoint::from_bits(header[2]),
        socket: header[1].into(),
    };
    Some((kind, Some((from, datagram))))
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_compatible().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn address(octets: [u8; 16], is_ipv6: bool) -> IpAddr {
    if is_ipv6 {
        return Ipv6Addr::from(octets).into();
    }
    let [.., a, b, c, d] = octets;
    Ipv4Addr::new(a, b, c, d).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_what_the_kernel_has_said() {
        for (remote, local) in [
            ("127.0.0.1:65535", Some("10.1.2.3")),
            ("[fe80::1%7]:9", Some("::1")),
            ("192.0.2.1:1", None),
        ] {
            let from = From {
                remote: remote.replace("%7", "").parse().unwrap(),
                local: local.map(|local| local.parse().unwrap()),
                ecn: EcnCodepoint::from_bits(3),
                socket: 2,
            };
            let text = message(Kind::Beginning, &from, b"datagram");
            let (kind, said) = read_message(&text).unwrap();
            let (said, datagram) = said.unwrap();
            assert_eq!((kind, datagram), (Kind::Beginning, &b"datagram"[..]));
            assert_eq!((said.remote, said.local), (from.remote, from.local));
            assert_eq!((said.ecn, said.socket), (from.ecn, 2));
            for cut in 0..HEADER_BYTES {
                assert!(read_message(&text[..cut]).is_none(), "{cut}");
            }
        }
        assert!(matches!(read_message(&[2]), Some((Kind::TakenOver, None))));
        assert!(read_message(&[9]).is_none());
    }
}
