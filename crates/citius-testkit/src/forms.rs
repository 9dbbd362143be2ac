//! Campaigns against the parser of multipart forms: arbitrary bytes in any cut, against a naive reader of the whole.
//!
//! - Nothing panics.
//! - parse(whole) == parse(any cut): the same complete parts, the same fault.
//! - The content of the parts is what stands between the delimiters.

use citius_forms::{Event, Fault, Limits, Multipart, Part};

use crate::rng::Rng;

/// The boundary of all forms here.
pub const BOUNDARY: &[u8] = b"b";

/// Parses `input` whole, byte by byte and in random pieces, and compares.
///
/// # Panics
/// If one of the invariants does not hold; the message says which.
pub fn check(input: &[u8], seed: u64) {
    let limits = limits_of(seed);
    let whole = run([input], limits);
    assert_eq!(run(input.chunks(1), limits), whole, "differs byte by byte");
    let pieces = Rng::new(seed).pieces(input);
    assert_eq!(run(pieces, limits), whole, "differs in pieces");
    let naive = contents(input);
    for (index, (part, content)) in whole.parts.iter().enumerate() {
        assert_eq!(
            Some(content.as_slice()),
            naive.get(index).copied(),
            "of {part:?}"
        );
    }
    if whole.end.is_ok() {
        assert_eq!(whole.parts.len(), naive.len(), "parts of a whole form");
    }
}

#[derive(Debug, PartialEq)]
struct Form {
    parts: Vec<(Part, Vec<u8>)>,
    end: Result<(), Fault>,
}

fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limits: Limits) -> Form {
    let mut parser = Multipart::new(BOUNDARY, limits).expect("the boundary is one");
    let (mut parts, mut open) = (Vec::new(), None);
    for mut piece in pieces {
        loop {
            match parser.receive(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Part(part))) => open = Some((part, Vec::new())),
                Ok(Some(Event::Content(bytes))) => {
                    let (_, content) = open.as_mut().expect("content is that of a part");
                    content.extend_from_slice(bytes);
                }
                Ok(Some(Event::PartEnd)) => parts.push(open.take().expect("a part ends once")),
                Ok(Some(Event::End)) => {}
                Err(end) => {
                    return Form {
                        parts,
                        end: Err(end),
                    };
                }
            }
        }
        assert!(piece.is_empty(), "input is left over");
    }
    let end = parser.finish();
    Form { parts, end }
}

/// What stands between the header section of each part and the next delimiter.
fn contents(input: &[u8]) -> Vec<&[u8]> {
    let Some(mut rest) = input
        .strip_prefix(b"--b")
        .or_else(|| after(input, b"\r\n--b"))
    else {
        return Vec::new();
    };
    let mut found = Vec::new();
    while !rest.starts_with(b"--") {
        let Some(line_end) = at(rest, b"\r\n") else {
            break;
        };
        let Some(content) = after(&rest[line_end..], b"\r\n\r\n") else {
            break;
        };
        let Some(end) = at(content, b"\r\n--b") else {
            break;
        };
        found.push(&content[..end]);
        rest = &content[end + 5..];
    }
    found
}

fn at(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

fn after<'a>(bytes: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    at(bytes, wanted).map(|at| &bytes[at + wanted.len()..])
}

fn limits_of(seed: u64) -> Limits {
    let mut rng = Rng::new(seed ^ 2);
    let mut most = || {
        if rng.once_in(3) {
            1 + rng.below(40)
        } else {
            4000
        }
    };
    let mut short = || u32::try_from(most()).unwrap_or(0);
    Limits {
        fields_max: short(),
        files_max: short(),
        part_head_bytes_max: 40 + short(),
        name_bytes_max: short(),
        text_bytes_max: short().into(),
        file_bytes_max: short().into(),
    }
}

/// A form, more or less.
pub fn compose(rng: &mut Rng) -> Vec<u8> {
    const WORDS: [&[u8]; 22] = [
        b"--b",
        b"\r\n--b",
        b"\r\n--b\r\n",
        b"\r\n--b--",
        b"\r\n--c",
        b"--",
        b"\r\n",
        b"\r",
        b"\n",
        b"-",
        b"\r\n\r\n",
        b"Content-Disposition: form-data; name=a",
        b"; filename=f",
        b"; filename*=utf-8''%41",
        b"; name=\"",
        b"\\\"",
        b"\\",
        b"%22",
        b"X: y",
        b"content-type: text/plain",
        b" ",
        b"\xff",
    ];
    let mut bytes = Vec::new();
    for _ in 0..=rng.below(4) {
        if !rng.once_in(8) {
            bytes.extend_from_slice(b"--b\r\nContent-Disposition: form-data; name=a");
        }
        if rng.once_in(2) {
            bytes.extend_from_slice(b"; filename=\"f\"");
        }
        if !rng.once_in(8) {
            bytes.extend_from_slice(b"\r\n\r\n");
        }
        for _ in 0..rng.below(6) {
            bytes.extend_from_slice(WORDS[rng.below(WORDS.len())]);
        }
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"--b--");
    for _ in 0..rng.below(3) {
        let (from, to) = (rng.below(bytes.len()), rng.below(bytes.len()));
        let word = WORDS[rng.below(WORDS.len())];
        bytes.splice(from..(from + to % 4).min(bytes.len()), word.iter().copied());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_campaign() {
        for seed in 0..3000 {
            check(&compose(&mut Rng::new(seed)), seed);
        }
    }
}
