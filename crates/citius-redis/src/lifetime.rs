//! How long a reply holds: what the server is asked together with a command, and what its replies come to.
//!
//! A server tells that a key has changed, but that its time to live has passed only when it removes it, which may be long afterwards
//! (`hz`, `DEBUG SET-ACTIVE-EXPIRE`). So the time that is left is asked for **before** the command, in the same write. The first reply
//! makes the server tell of every change from there on: if it has told of one before the command's own reply, that is not kept.

use alloc::vec::Vec;

use crate::cache::keys_of;
use crate::command::{append_head, append_word, traits_of};
use crate::reader::{Item, Value};
use crate::{CachedBy, Words};

/// Keys of one command whose times to live are asked for; the reply to one that has more is not kept.
pub const KEYS_ASKED_MAX: usize = 64;
/// How far a coarse clock may be behind.
const CLOCK_MS: u64 = 10;

/// How long the reply to a command holds, as far as the server has said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    sent_ms: u64,
    /// What is left at least; `None` without an end.
    left_ms: Option<u64>,
    /// How much had been told unasked when the first reply came.
    told: Option<u64>,
}

impl Lifetime {
    /// That of a command that is sent now.
    pub fn new(sent_ms: u64) -> Self {
        Self {
            sent_ms,
            left_ms: None,
            told: None,
        }
    }

    /// Takes a value of a reply to what was asked; `told` counts what the server has told unasked.
    pub fn take(&mut self, item: Item<'_>, told: u64) {
        self.told.get_or_insert(told);
        let left_ms = match item.value {
            Value::Integer(left_ms) => match u64::try_from(left_ms) {
                Ok(left_ms) => left_ms,
                // Without an end, or there is none.
                Err(_) => return,
            },
            // The encoding of a hash: that of large ones may have fields that expire, and so may those that are for it.
            Value::Blob(text) | Value::Simple(text) => match text {
                b"listpack" | b"ziplist" => return,
                _ => 0,
            },
            // A server that says so has no fields that expire.
            Value::Error(error) if is_unknown_hpttl(error) => return,
            Value::Error(_) => 0,
            _ => return,
        };
        self.left_ms = Some(self.left_ms.map_or(left_ms, |before| before.min(left_ms)));
    }

    /// Until when the reply may be kept that has come now; `None`: it may not.
    pub fn until_ms(&self, told: u64) -> Option<u64> {
        if self.told != Some(told) {
            return None;
        }
        match self.left_ms {
            None => Some(u64::MAX),
            Some(left_ms) => Some(self.sent_ms.saturating_add(left_ms.checked_sub(CLOCK_MS)?)),
        }
    }
}

fn is_unknown_hpttl(error: &[u8]) -> bool {
    error.starts_with(b"ERR unknown command") && error.windows(5).any(|part| part == b"HPTTL")
}

/// What decides how long the reply about a hash holds, where its fields may have times to live of their own.
enum Fields<'a> {
    /// It is of no hash.
    None,
    /// Those of these fields.
    These(Words<'a>),
    /// Those of all fields.
    All,
}

fn fields_of(command: &[u8]) -> Fields<'_> {
    let mut words = Words::of(command);
    let name = words.next().unwrap_or_default().to_ascii_uppercase();
    match name.as_slice() {
        b"HGET" | b"HMGET" | b"HEXISTS" | b"HSTRLEN" => {
            words.next();
            Fields::These(words)
        }
        _ if name.starts_with(b"H") => Fields::All,
        _ => Fields::None,
    }
}

/// Appends what has to be asked before a command, so that its reply may be kept, and returns how many replies that has; 0: it must not
/// be kept.
pub(crate) fn append_questions(output: &mut Vec<u8>, command: &[u8], has_field_ttls: bool) -> u32 {
    let Some(name) = Words::of(command).next() else {
        return 0;
    };
    if traits_of(name).cached_by == CachedBy::Nothing {
        return 0;
    }
    if keys_of(command).nth(KEYS_ASKED_MAX).is_some() {
        return 0;
    }
    let mut questions = 0;
    for key in keys_of(command) {
        append_head(output, 2);
        append_word(output, b"PTTL");
        append_word(output, key);
        questions += 1;
    }
    let (true, Some(key)) = (has_field_ttls, keys_of(command).next()) else {
        return questions;
    };
    match fields_of(command) {
        Fields::None => questions,
        Fields::These(fields) => {
            let number = fields.clone().count();
            append_head(output, 4 + number);
            append_word(output, b"HPTTL");
            append_word(output, key);
            append_word(output, b"FIELDS");
            append_word(output, itoa::Buffer::new().format(number).as_bytes());
            for field in fields {
                append_word(output, field);
            }
            questions + 1
        }
        Fields::All => {
            append_head(output, 3);
            append_word(output, b"OBJECT");
            append_word(output, b"ENCODING");
            append_word(output, key);
            questions + 1
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec;

    use super::*;
    use crate::append_command;

    fn asked(words: &[&str], has_field_ttls: bool) -> (u32, Vec<String>) {
        let mut command = Vec::new();
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        append_command(&mut command, &words);
        let mut output = Vec::new();
        let questions = append_questions(&mut output, &command, has_field_ttls);
        let mut texts = Vec::new();
        let mut words = Words::of(&output);
        while !output.is_empty() {
            let one: Vec<&[u8]> = words.by_ref().collect();
            texts.push(String::from_utf8(one.join(&b' ')).expect("ASCII"));
            if !words.begin() {
                break;
            }
        }
        (questions, texts)
    }

    #[test]
    fn what_is_asked_before_a_command() {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.into()).collect::<Vec<_>>();
        assert_eq!(asked(&["GET", "a"], true), (1, texts(&["PTTL a"])));
        assert_eq!(
            asked(&["mget", "a", "b"], true),
            (2, texts(&["PTTL a", "PTTL b"]))
        );
        assert_eq!(asked(&["SET", "a", "b"], true), (0, vec![]));
        assert_eq!(asked(&["HGET", "a", "f"], false), (1, texts(&["PTTL a"])));
        assert_eq!(
            asked(&["HMGET", "a", "f", "g"], true),
            (2, texts(&["PTTL a", "HPTTL a FIELDS 2 f g"]))
        );
        for name in ["HGETALL", "HKEYS", "HVALS", "HLEN"] {
            assert_eq!(
                asked(&[name, "a"], true),
                (2, texts(&["PTTL a", "OBJECT ENCODING a"])),
            );
        }
        let mut many = vec!["MGET"; KEYS_ASKED_MAX + 1];
        assert_eq!(asked(&many, true).0 as usize, KEYS_ASKED_MAX);
        many.push("k");
        assert_eq!(asked(&many, true), (0, vec![]));
    }

    fn until(values: &[Value<'_>]) -> Option<u64> {
        let mut lifetime = Lifetime::new(1000);
        for &value in values {
            let item = Item {
                value,
                ends: 0,
                is_last: true,
            };
            lifetime.take(item, 7);
        }
        lifetime.until_ms(7)
    }

    #[test]
    fn the_shortest_time_counts_from_when_the_command_was_sent() {
        assert_eq!(until(&[Value::Integer(-1)]), Some(u64::MAX));
        assert_eq!(until(&[Value::Integer(-2), Value::Null]), Some(u64::MAX));
        assert_eq!(until(&[Value::Integer(110)]), Some(1100));
        assert_eq!(
            until(&[Value::Integer(500), Value::Integer(110), Value::Integer(-1)]),
            Some(1100)
        );
        assert_eq!(until(&[Value::Integer(CLOCK_MS.cast_signed() - 1)]), None);
        assert_eq!(until(&[Value::Integer(0)]), None);
    }

    #[test]
    fn what_is_not_known_is_not_kept() {
        let endless = Value::Integer(-1);
        assert_eq!(until(&[]), None, "the server has not been asked");
        assert_eq!(until(&[Value::Error(b"NOPERM no")]), None);
        assert_eq!(until(&[endless, Value::Blob(b"hashtable")]), None);
        assert_eq!(until(&[endless, Value::Blob(b"listpackex")]), None);
        assert_eq!(until(&[endless, Value::Blob(b"listpack")]), Some(u64::MAX));
        let unknown = Value::Error(b"ERR unknown command 'HPTTL', with args beginning with: 'a'");
        assert_eq!(until(&[endless, unknown]), Some(u64::MAX));
        assert_eq!(until(&[Value::Error(b"ERR unknown command 'PTTL'")]), None);
    }

    #[test]
    fn a_change_that_is_told_between_the_replies_ends_it() {
        let mut lifetime = Lifetime::new(0);
        let item = Item {
            value: Value::Integer(-1),
            ends: 0,
            is_last: true,
        };
        lifetime.take(item, 7);
        assert_eq!(lifetime.until_ms(8), None);
        lifetime.take(item, 8);
        assert_eq!(lifetime.until_ms(8), None);
    }
}
