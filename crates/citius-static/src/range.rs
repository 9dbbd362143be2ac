//! Byte ranges (RFC 9110 §14).
//!
//! What is malformed, too much or more than the whole is ignored, as the RFC allows: the client gets all
//! of it once, which is less work than a thousand small pieces.

use citius_http::fields::parse_decimal;

/// First byte and number of bytes, at least one.
pub(crate) type Piece = (u64, u64);

/// What a `Range` field asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// These pieces, in this order; at least one.
    Pieces(Vec<Piece>),
    /// Nothing that is there: 416.
    Nothing,
}

/// What `value` asks for of `length` bytes.
pub(crate) fn parse(value: &[u8], length: u64, ranges_max: u32) -> Wanted {
    let Some((unit, list)) = value.split_at_checked(6) else {
        return Wanted::Whole;
    };
    // An empty file has no piece that could be named.
    if !unit.eq_ignore_ascii_case(b"bytes=") || length == 0 {
        return Wanted::Whole;
    }
    let (mut pieces, mut total, mut n_asked) = (Vec::new(), 0u64, 0);
    for spec in list.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if spec.is_empty() {
            continue;
        }
        n_asked += 1;
        if n_asked > ranges_max {
            return Wanted::Whole;
        }
        match piece(spec, length) {
            Err(Malformed) => return Wanted::Whole,
            Ok(None) => {}
            Ok(Some(piece)) => {
                total = total.saturating_add(piece.1);
                pieces.push(piece);
            }
        }
    }
    if n_asked == 0 || total > length {
        Wanted::Whole
    } else if pieces.is_empty() {
        Wanted::Nothing
    } else {
        Wanted::Pieces(pieces)
    }
}

struct Malformed;

/// One `first-last`, `first-` or `-suffix`; `None` if nothing of it is there.
fn piece(spec: &[u8], length: u64) -> Result<Option<Piece>, Malformed> {
    let dash = spec.iter().position(|&b| b == b'-').ok_or(Malformed)?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    let number = |digits: &[u8]| match digits {
        // More than 64 bits is beyond every file.
        digits if digits.iter().all(u8::is_ascii_digit) && !digits.is_empty() => {
            Ok(parse_decimal(digits).unwrap_or(u64::MAX))
        }
        _ => Err(Malformed),
    };
    if first.is_empty() {
        let suffix = number(last)?.min(length);
        return Ok((suffix > 0).then(|| (length - suffix, suffix)));
    }
    let first = number(first)?;
    let last = if last.is_empty() {
        u64::MAX
    } else {
        number(last)?
    };
    if last < first {
        return Err(Malformed);
    }
    Ok((first < length).then(|| (first, last.min(length - 1) - first + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        use Wanted::{Nothing, Whole};
        let pieces = |pieces: &[Piece]| Wanted::Pieces(pieces.to_vec());
        for (value, expected) in [
            ("bytes=0-0", pieces(&[(0, 1)])),
            ("bytes=0-", pieces(&[(0, 100)])),
            ("Bytes=10-19", pieces(&[(10, 10)])),
            ("bytes=90-1000", pieces(&[(90, 10)])),
            ("bytes=-10", pieces(&[(90, 10)])),
            ("bytes=-1000", pieces(&[(0, 100)])),
            ("bytes=0-1, 50-59 ,-1", pieces(&[(0, 2), (50, 10), (99, 1)])),
            ("bytes=50-59,0-1", pieces(&[(50, 10), (0, 2)])),
            ("bytes=0-1,100-", pieces(&[(0, 2)])),
            ("bytes=,0-1,,", pieces(&[(0, 2)])),
            ("bytes=5-99999999999999999999999", pieces(&[(5, 95)])),
            ("bytes=100-", Nothing),
            ("bytes=-0", Nothing),
            ("bytes=99999999999999999999999-", Nothing),
            ("bytes=200-300,100-", Nothing),
            ("bytes=", Whole),
            ("bytes=2-1", Whole),
            ("bytes=a-b", Whole),
            ("bytes=1", Whole),
            ("bytes=--1", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=1-2-3", Whole),
            ("bytes = 1-2", Whole),
            ("lines=1-2", Whole),
            ("bytes=0-,0-", Whole),
            ("bytes=0-60,40-", Whole),
            ("bytes=0-0,1-1,2-2,3-3,4-4", Whole),
            ("", Whole),
        ] {
            assert_eq!(parse(value.as_bytes(), 100, 4), expected, "{value}");
        }
        assert_eq!(parse(b"bytes=-5", 0, 4), Whole);
    }
}
