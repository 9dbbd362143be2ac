//! Content codings and the client's choice among them (RFC 9110 §8.4, §12.5.3).

use crate::Head;

/// A content coding a server may apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstd,
    /// `gzip` (RFC 1952).
    Gzip,
}

impl Coding {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// As in `Content-Encoding`.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The coding called `token`, compared without regard to case.
    pub fn from_token(token: &[u8]) -> Option<Self> {
        let is = |name: &[u8]| token.eq_ignore_ascii_case(name);
        match () {
            () if is(b"br") => Some(Self::Brotli),
            () if is(b"zstd") => Some(Self::Zstd),
            () if is(b"gzip") || is(b"x-gzip") => Some(Self::Gzip),
            () => None,
        }
    }
}

/// What a client thinks of each coding, in thousandths; 0 is "not acceptable".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    weights: [u16; 3],
    identity: u16,
}

impl Accepted {
    /// From the `Accept-Encoding` fields of a request; without one nothing is coded.
    pub fn of(head: &Head) -> Self {
        let (mut weights, mut identity, mut others) = ([None; 3], None, None);
        for (_, value) in head
            .fields()
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"accept-encoding"))
        {
            for item in value.split(|&byte| byte == b',') {
                let mut parts = item.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
                let name = parts.next().unwrap_or_default();
                // An invalid weight counts as 0: the coding is not used.
                let weight = parts.next().map_or(Some(1000), weight).unwrap_or(0);
                if let Some(coding) = Coding::from_token(name) {
                    if let Some(slot) = weights.get_mut(coding as usize) {
                        *slot = Some(weight);
                    }
                } else if name == b"*" {
                    others = Some(weight);
                } else if name.eq_ignore_ascii_case(b"identity") {
                    identity = Some(weight);
                }
            }
        }
        Self {
            weights: weights.map(|weight| weight.or(others).unwrap_or(0)),
            // Acceptable unless said otherwise, but the last choice.
            identity: identity.unwrap_or(0),
        }
    }

    /// The client's choice among `offered`, the earlier of two it likes as much; `None` if it would rather
    /// have the bytes as they are.
    pub fn choose(self, offered: impl IntoIterator<Item = Coding>) -> Option<Coding> {
        let mut best = None;
        for coding in offered {
            let weight = self.weights.get(coding as usize).copied().unwrap_or(0);
            if weight > 0 && best.is_none_or(|(_, most)| weight > most) {
                best = Some((coding, weight));
            }
        }
        best.filter(|(_, weight)| *weight >= self.identity)
            .map(|(coding, _)| coding)
    }
}

/// `q=0.5` in thousandths.
fn weight(parameter: &[u8]) -> Option<u16> {
    let (name, digits) = parameter.split_at_checked(2)?;
    if !name.eq_ignore_ascii_case(b"q=") {
        return None;
    }
    match digits {
        [b'1'] => Some(1000),
        [b'1', b'.', zeros @ ..] if zeros.len() <= 3 => {
            zeros.iter().all(|&b| b == b'0').then_some(1000)
        }
        [b'0'] => Some(0),
        [b'0', b'.', decimals @ ..] if decimals.len() <= 3 => {
            let mut weight = 0u16;
            for at in 0..3 {
                let digit = decimals.get(at).copied().unwrap_or(b'0');
                if !digit.is_ascii_digit() {
                    return None;
                }
                weight = weight
                    .saturating_mul(10)
                    .saturating_add(u16::from(digit.saturating_sub(b'0')));
            }
            Some(weight)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::head::{FieldSpan, Span};

    #[track_caller]
    fn check(value: &str, offered: &[Coding], expected: Option<Coding>) {
        const NAME: &[u8] = b"Accept-Encoding";
        let at = |place: usize| u32::try_from(place).expect("a short test");
        let (name_end, end) = (at(NAME.len()), at(NAME.len() + value.len()));
        let head = Head {
            bytes: [NAME, value.as_bytes()].concat(),
            fields: vec![FieldSpan {
                name: Span {
                    start: 0,
                    end: name_end,
                },
                value: Span {
                    start: name_end,
                    end,
                },
            }],
            ..Head::default()
        };
        let chosen = Accepted::of(&head).choose(offered.iter().copied());
        assert_eq!(chosen, expected, "{value:?}");
    }

    #[test]
    fn the_client_chooses() {
        use Coding::{Brotli, Gzip, Zstd};
        let all = &Coding::ALL;
        for (value, expected) in [
            ("gzip", Some(Gzip)),
            ("x-gzip", Some(Gzip)),
            ("gzip, deflate, br, zstd", Some(Brotli)),
            ("GZIP;Q=1.0, br;q=0.999", Some(Gzip)),
            ("br;q=0", None),
            ("*", Some(Brotli)),
            ("*;q=0.5, br;q=0.4", Some(Zstd)),
            ("br;q=0, *;q=0.1", Some(Zstd)),
            ("identity", None),
            ("identity, gzip;q=0.5", None),
            ("identity;q=0.5, gzip;q=0.5", Some(Gzip)),
            ("identity;q=0", None),
            ("gzip;q=1.5", None),
            ("gzip;q=0.0001", None),
            ("gzip;level=9", None),
            ("gzip ; q=0.2", Some(Gzip)),
            ("", None),
            ("deflate", None),
        ] {
            check(value, all, expected);
        }
        check("br, gzip", &[Gzip], Some(Gzip));
        check("br, gzip", &[Gzip, Brotli], Some(Gzip));
        check("br, gzip", &[], None);
        assert_eq!(Accepted::of(&Head::default()).choose(Coding::ALL), None);
    }
}
