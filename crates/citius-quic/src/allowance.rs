//! What a client may be sent at an address that it has not proven: three times the bytes that have come from there (RFC 9000
//! §8). `quinn-proto` lets a datagram begin below that and end above, pads a challenge whatever has come, and looks for the
//! largest size of a path before that is proven.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::cid::{CID_BYTES, destination};

/// What a datagram earns its client.
#[derive(Clone, Copy, Debug)]
pub struct Earned {
    bytes: usize,
    named: Option<[u8; CID_BYTES]>,
    from: IpAddr,
}

impl Earned {
    /// That of `datagram`.
    pub fn by(datagram: &[u8], from: SocketAddr) -> Self {
        Self {
            bytes: datagram.len(),
            named: destination(datagram).and_then(|id| id.try_into().ok()),
            from: from.ip(),
        }
    }

    /// The address that it has come from.
    pub fn from(&self) -> IpAddr {
        self.from
    }
}

/// What a client may be sent while its handshake goes on.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// `None`: everything.
    left: Option<usize>,
    /// The connection id that the client has begun with, if it is as long as ours.
    chosen: Option<[u8; CID_BYTES]>,
}

impl Allowance {
    /// That of a client whose first datagram earns `earned`.
    pub(crate) fn new(is_proven: bool, earned: Earned) -> Self {
        Self {
            left: (!is_proven).then_some(3 * earned.bytes),
            chosen: earned.named,
        }
    }

    /// A datagram has come. One that names an id of ours proves the address, for who has sent it has received that id. That a
    /// packet is sealed rightly is not looked at: its type proves nothing.
    pub fn add(&mut self, earned: Earned) {
        if earned.named.is_some() && earned.named != self.chosen {
            self.left = None;
        }
        if let Some(left) = &mut self.left {
            *left += 3 * earned.bytes;
        }
    }

    /// Whether `bytes` may be sent, and takes them off.
    pub fn spend(&mut self, bytes: usize) -> bool {
        self.left.as_mut().is_none_or(|left| take_off(left, bytes))
    }

    /// Whether the address is not proven.
    pub fn is_limited(self) -> bool {
        self.left.is_some()
    }

    /// The address is proven.
    pub fn lift(&mut self) {
        self.left = None;
    }
}

/// What a connection may send to addresses that its packets have come from, and that are not its client's so far.
#[derive(Debug, Default)]
pub struct Elsewhere {
    left: Vec<(IpAddr, usize)>,
    /// When a challenge went beyond.
    beyond_at: Option<Instant>,
}

/// Addresses that are remembered; of more, the earliest has to earn anew.
const ADDRESSES_MAX: usize = 8;
/// Bytes of a challenge, which has to be as long as a path has to carry (RFC 9000 §8.2.1).
const CHALLENGE_BYTES: usize = 1200;
/// How often one may go beyond: a client that has gone elsewhere is asked there after its first packet, however short that is.
/// Once it has proven an address another one may: it has got as much itself.
const BEYOND_EVERY: Duration = Duration::from_secs(10);

impl Elsewhere {
    /// A datagram has come.
    pub fn add(&mut self, earned: Earned) {
        let known = self.left.iter_mut().find(|(from, _)| *from == earned.from);
        if let Some((_, left)) = known {
            *left = left.saturating_add(3 * earned.bytes);
            return;
        }
        if self.left.len() >= ADDRESSES_MAX {
            self.left.remove(0);
        }
        self.left.push((earned.from, 3 * earned.bytes));
    }

    /// Whether `bytes` may be sent to `to`, and takes them off.
    pub fn spend(&mut self, to: IpAddr, bytes: usize, now: Instant) -> bool {
        let known = self.left.iter_mut().find(|(from, _)| *from == to);
        if known.is_some_and(|(_, left)| take_off(left, bytes)) {
            return true;
        }
        let is_early = |at: Instant| now.saturating_duration_since(at) < BEYOND_EVERY;
        if bytes > CHALLENGE_BYTES || self.beyond_at.is_some_and(is_early) {
            return false;
        }
        self.beyond_at = Some(now);
        true
    }

    /// The client has proven an address.
    pub fn proven(&mut self) {
        self.beyond_at = None;
    }
}

fn take_off(left: &mut usize, bytes: usize) -> bool {
    let may = *left >= bytes;
    *left -= if may { bytes } else { 0 };
    may
}

#[cfg(test)]
mod tests {
    use super::*;

    fn earned(first: u8, id: u8, bytes: usize) -> Earned {
        let mut datagram = vec![7; bytes];
        let head = [first, 0, 0, 0, 1, 8];
        let at = if first & 0x80 == 0 { 1 } else { head.len() };
        datagram[..at].copy_from_slice(&head[..at]);
        datagram[at..at + CID_BYTES].fill(id);
        Earned::by(&datagram, "192.0.2.1:1".parse().expect("an address"))
    }

    #[test]
    fn only_an_id_of_ours_proves_an_address() {
        const INITIAL: u8 = 0xc0;
        const HANDSHAKE: u8 = 0xe0;
        const SHORT: u8 = 0x40;
        let new = || Allowance::new(false, earned(INITIAL, 1, 1200));
        // The client has chosen id 1 itself, so that a datagram with it proves nothing.
        for kind in [INITIAL, HANDSHAKE, SHORT] {
            let mut allowance = new();
            allowance.add(earned(kind, 1, 100));
            assert!(!allowance.spend(3 * 1300 + 1) && allowance.spend(3 * 1300));
            assert!(allowance.is_limited());
            allowance.add(earned(kind, 2, 100));
            assert!(!allowance.is_limited() && allowance.spend(usize::MAX));
        }
        assert!(Allowance::new(true, earned(INITIAL, 1, 1200)).spend(usize::MAX));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test has no reactor")]
    fn an_address_elsewhere_gets_three_times_what_has_come_and_a_challenge_now_and_then() {
        let (mut elsewhere, now) = (Elsewhere::default(), Instant::now());
        let first: IpAddr = "192.0.2.1".parse().expect("an address");
        elsewhere.add(earned(0x40, 1, 30));
        assert!(!elsewhere.spend(first, CHALLENGE_BYTES + 1, now));
        assert!(elsewhere.spend(first, CHALLENGE_BYTES, now), "a challenge");
        assert!(!elsewhere.spend(first, CHALLENGE_BYTES, now), "only one");
        assert!(elsewhere.spend(first, 90, now) && !elsewhere.spend(first, 1, now));
        elsewhere.proven();
        assert!(elsewhere.spend(first, 1, now) && !elsewhere.spend(first, 1, now));
        for last in 2..=u8::try_from(ADDRESSES_MAX).expect("a few") + 1 {
            let other = Earned {
                from: IpAddr::from([192, 0, 2, last]),
                ..earned(0x40, 1, 1200)
            };
            elsewhere.add(other);
            assert!(elsewhere.spend(other.from, 3600, now));
            assert!(!elsewhere.spend(other.from, 1, now));
        }
        assert_eq!(elsewhere.left.len(), ADDRESSES_MAX);
        assert!(elsewhere.spend(first, CHALLENGE_BYTES, now + BEYOND_EVERY));
    }
}
