//! Connection ids that name the worker which has given them out: slot and generation, encrypted with what makes each one new.
//!
//! The cipher is Speck64/128 (Beaulieu et al. 2013): a classic packet filter, which has additions, rotations by shifts and
//! nothing else, can decrypt it ([`steering`](crate::steering)). It hides the slot from observers, as RFC 9000 §5.1 asks,
//! and guards nothing: who invents an id reaches a worker that does not know it.

use quinn_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of our connection ids, one block of the cipher.
pub const CID_BYTES: usize = 8;
/// Rounds of Speck64/128.
pub(crate) const ROUNDS: usize = 27;

/// Who has given out a connection id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The place of the worker, or of its reactor, with a socket of its own.
    pub slot: u16,
    /// How many workers had that place before, modulo 256.
    pub generation: u8,
}

/// The round keys of the cipher of connection ids.
#[derive(Clone)]
pub(crate) struct CidKey(pub(crate) [u32; ROUNDS]);

impl std::fmt::Debug for CidKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CidKey")
    }
}

impl CidKey {
    /// From four words, the last one of the key as it is written first.
    pub(crate) fn new([first, a, b, c]: [u32; 4]) -> Self {
        let (mut rounds, mut key, mut others) = ([0; ROUNDS], first, [a, b, c]);
        for (index, round) in (0..).zip(&mut rounds) {
            *round = key;
            let other = key.wrapping_add(others[0].rotate_right(8)) ^ index;
            others = [others[1], others[2], other];
            key = key.rotate_left(3) ^ other;
        }
        Self(rounds)
    }

    pub(crate) fn encrypt(&self, (mut x, mut y): (u32, u32)) -> (u32, u32) {
        for round in self.0 {
            x = x.rotate_right(8).wrapping_add(y) ^ round;
            y = y.rotate_left(3) ^ x;
        }
        (x, y)
    }

    pub(crate) fn decrypt(&self, (mut x, mut y): (u32, u32)) -> (u32, u32) {
        for round in self.0.iter().rev() {
            y = (y ^ x).rotate_right(3);
            x = (x ^ round).wrapping_sub(y).rotate_left(8);
        }
        (x, y)
    }
}

impl Origin {
    /// Who has given out `cid`; `None`: none of us.
    pub(crate) fn of(key: &CidKey, cid: &[u8]) -> Option<Self> {
        let (x, y) = <&[u8; CID_BYTES]>::try_from(cid).ok()?.split_at(4);
        let word = |bytes: &[u8]| bytes.try_into().map(u32::from_be_bytes).ok();
        let (x, _) = key.decrypt((word(x)?, word(y)?));
        let [high, low, generation, check] = x.to_be_bytes();
        (check == CHECK).then_some(Self {
            slot: u16::from_be_bytes([high, low]),
            generation,
        })
    }

    fn cid(self, key: &CidKey, unique: u32) -> [u8; CID_BYTES] {
        let [high, low] = self.slot.to_be_bytes();
        let x = u32::from_be_bytes([high, low, self.generation, CHECK]);
        let (x, y) = key.encrypt((x, unique));
        let mut cid = [0; CID_BYTES];
        cid[..4].copy_from_slice(&x.to_be_bytes());
        cid[4..].copy_from_slice(&y.to_be_bytes());
        cid
    }
}

/// The last byte of the first word: ids that clients choose have it by chance only.
pub(crate) const CHECK: u8 = 0;

/// The connection id to which a datagram is addressed, in its first packet; `None`: it is too short, or not as long as ours.
pub(crate) fn destination(datagram: &[u8]) -> Option<&[u8]> {
    if datagram.first()? & LONG_HEADER == 0 {
        return datagram.get(1..1 + CID_BYTES);
    }
    // Flags, version, and the length of the id (RFC 8999 §5.1).
    (usize::from(*datagram.get(5)?) == CID_BYTES)
        .then(|| datagram.get(6..6 + CID_BYTES))
        .flatten()
}

/// The bit of the first byte that tells a long header.
pub(crate) const LONG_HEADER: u8 = 0x80;

/// Gives out the connection ids of one worker.
pub(crate) struct Generator {
    pub(crate) key: CidKey,
    pub(crate) origin: Origin,
    pub(crate) random: SystemRandom,
}

impl ConnectionIdGenerator for Generator {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut unique = [0; 4];
        self.random
            .fill(&mut unique)
            .expect("the kernel gives random numbers once it has started");
        ConnectionId::new(&self.origin.cid(&self.key, u32::from_be_bytes(unique)))
    }

    fn validate(&self, cid: &ConnectionId) -> Result<(), InvalidCid> {
        Origin::of(&self.key, cid).map(|_| ()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        CID_BYTES
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of the cipher's authors, appendix C.
    #[test]
    fn speck64_128() {
        let key = CidKey::new([0x0302_0100, 0x0b0a_0908, 0x1312_1110, 0x1b1a_1918]);
        let (plain, sealed) = ((0x3b72_6574, 0x7475_432d), (0x8c6f_a548, 0x454e_028b));
        assert_eq!(key.encrypt(plain), sealed);
        assert_eq!(key.decrypt(sealed), plain);
    }

    #[test]
    fn ids_name_their_origin_to_those_who_have_the_key() {
        let (key, other) = (CidKey::new([1, 2, 3, 4]), CidKey::new([1, 2, 3, 5]));
        let origin = Origin {
            slot: 1023,
            generation: 255,
        };
        let mut strangers = 0;
        for unique in 0..2560 {
            let cid = origin.cid(&key, unique);
            assert_eq!(Origin::of(&key, &cid), Some(origin));
            strangers += usize::from(Origin::of(&other, &cid).is_some());
        }
        assert!(strangers < 40, "one of 256 by chance: {strangers}");
        assert_eq!(Origin::of(&key, &[0; 7]), None);
    }

    #[test]
    fn a_datagram_names_its_destination_in_either_form() {
        let cid = [1, 2, 3, 4, 5, 6, 7, 8];
        let short = [&[0x40][..], &cid, &[9; 20]].concat();
        assert_eq!(destination(&short), Some(&cid[..]));
        let long = [&[0xc0, 0, 0, 0, 1, 8][..], &cid, &[9; 20]].concat();
        assert_eq!(destination(&long), Some(&cid[..]));
        for cut in 0..9 {
            assert_eq!(destination(&short[..cut]), None);
        }
        for cut in 0..14 {
            assert_eq!(destination(&long[..cut]), None);
        }
        let other = [&[0xc0, 0, 0, 0, 1, 20][..], &[7; 20]].concat();
        assert_eq!(destination(&other), None);
    }
}
