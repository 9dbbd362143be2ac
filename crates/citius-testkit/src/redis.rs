//! Campaigns against the reader of RESP3: replies of any shape, damaged, in any cut.
//!
//! - Nothing panics.
//! - parse(whole) == parse(any cut): the same values, the same fault.
//! - A reply that is not damaged is read as what it was made from.
//! - What is announced and does not come costs nothing: no reply takes more than its limit.

use citius_redis::{Connection, Event, Fault, Item, Login, Reader, Value};

use crate::campaign::mutate;
use crate::rng::Rng;

/// A reply as a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A value that contains no others, as it is shown.
    Leaf(String),
    /// An array, set, map or push: its letter, and its elements (of a map keys and values in turn).
    Branch(char, Vec<Tree>),
}

/// Reads `input` whole, byte by byte and in random pieces, and compares.
///
/// # Panics
/// If one of the invariants does not hold; the message says which.
pub fn check(input: &[u8], seed: u64) {
    let limit = [1_000, 100_000, 256 * 1024 * 1024][Rng::new(seed).below(3)];
    let whole = run([input], limit);
    assert_eq!(run(input.chunks(1), limit), whole, "differs byte by byte");
    assert_eq!(run(pieces(input, seed), limit), whole, "differs in pieces");
    converse(input, seed);
}

/// A connection after its login: what it reads is replies in their order, and never more of them than were asked for.
fn converse(input: &[u8], seed: u64) {
    const HELLO: &[u8] = b"%1\r\n+version\r\n+7\r\n+OK\r\n+OK\r\n";
    let mut rng = Rng::new(seed ^ 4);
    let asked = rng.below(4);
    let mut connection = Connection::new(&Login::default(), 100_000, &mut Vec::new());
    let bytes = [HELLO, input].concat();
    let mut input = bytes.as_slice();
    let (mut is_open, mut replies) = (false, 0);
    loop {
        match connection.receive(&mut input) {
            Ok(Some(Event::Open(_))) => {
                is_open = true;
                connection.expect(asked);
            }
            Ok(Some(Event::Reply(item))) => replies += usize::from(item.is_last),
            Ok(Some(Event::Push(_) | Event::Refused(_))) => {}
            Ok(None) | Err(_) => break,
        }
    }
    assert!(is_open, "the login is not read");
    assert!(replies <= asked, "more replies than were asked for");
}

fn pieces(input: &[u8], seed: u64) -> Vec<&[u8]> {
    Rng::new(seed ^ 1).pieces(input)
}

/// What was read: whole replies, what has come of the last one, and the fault.
type Read = (Vec<Tree>, usize, Option<Fault>);

fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Read {
    let mut reader = Reader::new(limit);
    let (mut held, mut builder) = (Vec::new(), Builder::default());
    for piece in pieces {
        held.extend_from_slice(piece);
        let mut input = held.as_slice();
        loop {
            match reader.next(&mut input) {
                Ok(Some(item)) => builder.add(item),
                Ok(None) => break,
                Err(fault) => return (builder.replies, builder.open.len(), Some(fault)),
            }
        }
        let rest = input.len();
        held.drain(..held.len() - rest);
    }
    (builder.replies, builder.open.len(), None)
}

/// Puts values together again.
#[derive(Default)]
struct Builder {
    replies: Vec<Tree>,
    open: Vec<(char, Vec<Tree>)>,
}

impl Builder {
    fn add(&mut self, item: Item<'_>) {
        let branch = match item.value {
            Value::Array(_) => Some('*'),
            Value::Set(_) => Some('~'),
            Value::Map(_) => Some('%'),
            Value::Push(_) => Some('>'),
            _ => None,
        };
        match branch {
            Some(letter) => self.open.push((letter, Vec::new())),
            None => self.keep(Tree::Leaf(show(item.value))),
        }
        for _ in 0..item.ends {
            let (letter, elements) = self.open.pop().expect("what ends was open");
            self.keep(Tree::Branch(letter, elements));
        }
        assert_eq!(
            item.is_last,
            self.open.is_empty(),
            "the last value of a reply"
        );
    }

    fn keep(&mut self, tree: Tree) {
        match self.open.last_mut() {
            Some((_, elements)) => elements.push(tree),
            None => self.replies.push(tree),
        }
    }
}

fn show(value: Value<'_>) -> String {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    match value {
        Value::Blob(bytes) | Value::Verbatim(bytes) => text(bytes),
        Value::Simple(bytes) => format!("+{}", text(bytes)),
        Value::Error(bytes) => format!("-{}", text(bytes)),
        Value::BigNumber(bytes) => format!("({}", text(bytes)),
        Value::Integer(number) => format!(":{number}"),
        Value::Double(number) => format!(",{number}"),
        Value::Boolean(value) => format!("#{value}"),
        Value::Null => "_".into(),
        other => format!("{other:?}"),
    }
}

/// A reply as bytes, and the tree that it is.
pub fn compose(rng: &mut Rng) -> (Vec<u8>, Tree) {
    let mut bytes = Vec::new();
    let is_push = rng.once_in(8);
    let tree = branch(rng, &mut bytes, 4, is_push);
    (bytes, tree)
}

/// Such replies, and damage to them.
pub fn compose_damaged(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=rng.below(3) {
        bytes.extend(compose(rng).0);
    }
    for _ in 0..rng.below(4) {
        mutate(rng, &mut bytes, b"*2147483647\r\n$99999999\r\n|1\r\n>1\r\n");
    }
    bytes
}

fn branch(rng: &mut Rng, bytes: &mut Vec<u8>, depth: usize, is_push: bool) -> Tree {
    if !is_push && (depth == 0 || rng.once_in(2)) {
        return leaf(rng, bytes);
    }
    if rng.once_in(6) {
        // An attribute, which is dropped.
        bytes.extend(b"|1\r\n+ttl\r\n");
        branch(rng, bytes, depth.saturating_sub(1), false);
    }
    let letter = if is_push {
        '>'
    } else {
        ['*', '~', '%'][rng.below(3)]
    };
    let count = rng.below(4);
    let values = if letter == '%' { count * 2 } else { count };
    bytes.extend(format!("{letter}{count}\r\n").bytes());
    let elements = (0..values).map(|_| branch(rng, bytes, depth.saturating_sub(1), false));
    Tree::Branch(letter, elements.collect())
}

fn leaf(rng: &mut Rng, bytes: &mut Vec<u8>) -> Tree {
    let text = |rng: &mut Rng| {
        let letters = (0..rng.below(12)).map(|_| b"ab \r\n$*:\0\xff-1"[rng.below(12)]);
        letters.collect::<Vec<u8>>()
    };
    let line = |rng: &mut Rng| format!("word {}", rng.below(100));
    let shown = match rng.below(10) {
        0 => {
            let number = rng.next_u64().cast_signed() >> rng.below(60);
            bytes.extend(format!(":{number}\r\n").bytes());
            format!(":{number}")
        }
        1 => {
            let line = line(rng);
            bytes.extend(format!("+{line}\r\n").bytes());
            format!("+{line}")
        }
        2 => {
            let line = line(rng);
            bytes.extend(format!("-{line}\r\n").bytes());
            format!("-{line}")
        }
        3 => {
            bytes.extend(b"_\r\n");
            "_".into()
        }
        4 => {
            bytes.extend(b"#t\r\n");
            "#true".into()
        }
        5 => {
            bytes.extend(b",1.5\r\n");
            ",1.5".into()
        }
        6 => {
            bytes.extend(b"(-12345678901234567890123\r\n");
            "(-12345678901234567890123".into()
        }
        kind => {
            let text = text(rng);
            let (letter, format) = match kind {
                7 => ('=', "txt:"),
                8 => ('!', ""),
                _ => ('$', ""),
            };
            bytes.extend(format!("{letter}{}\r\n{format}", text.len() + format.len()).bytes());
            bytes.extend(&text);
            bytes.extend(b"\r\n");
            let shown = text.escape_ascii().to_string();
            if kind == 8 {
                format!("-{shown}")
            } else {
                shown
            }
        }
    };
    Tree::Leaf(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_as_what_they_were_made_from() {
        for seed in 0..3000 {
            let (bytes, tree) = compose(&mut Rng::new(seed));
            check(&bytes, seed);
            assert_eq!(run([bytes.as_slice()], 100_000), (vec![tree], 0, None));
        }
    }

    #[test]
    fn a_short_campaign() {
        for seed in 0..5000 {
            check(&compose_damaged(&mut Rng::new(seed)), seed);
        }
    }
}
