//! The static and the dynamic table (RFC 7541 §2.3, appendix A).
//!
//! Invariant: `size <= size_max`, counted as §4.1 does, 32 bytes an entry on top of its text.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use citius_http::multiplexed::{ENTRY_BYTES, entry_bytes};

/// The static table; index 1 comes first.
pub(super) static STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// Name and value in one block.
#[derive(Debug)]
struct Entry {
    text: Box<[u8]>,
    name_bytes: usize,
}

/// The fields that were said before, newest first.
#[derive(Debug)]
pub(super) struct Table {
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
    /// How often an entry was added or the size changed: as long as it stays, so does every index.
    generation: u64,
}

impl Table {
    pub(super) fn new(size_max: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            size_max,
            generation: 0,
        }
    }

    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn size_max(&self) -> usize {
        self.size_max
    }

    /// Drops what does not fit any more.
    pub(super) fn resize(&mut self, size_max: usize) {
        self.generation = self.generation.wrapping_add(1);
        self.size_max = size_max;
        self.evict(0);
    }

    /// Adds a field; one that is larger than the table empties it (§4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.generation = self.generation.wrapping_add(1);
        let cost = entry_bytes(name, value);
        self.evict(cost);
        if cost > self.size_max {
            return;
        }
        self.size = self.size.saturating_add(cost);
        self.entries.push_front(Entry {
            text: [name, value].concat().into(),
            name_bytes: name.len(),
        });
    }

    /// The field with the index `index`, from 1 up, static ones first.
    #[inline]
    pub(super) fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let index = index.checked_sub(1)?;
        match STATIC.get(index) {
            Some(field) => Some(*field),
            None => self.at(index.saturating_sub(STATIC.len())),
        }
    }

    /// Index of exactly this field among the dynamic ones.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<usize> {
        let is_it = |index: &usize| self.at(*index) == Some((name, value));
        let index = (0..self.entries.len()).find(is_it)?;
        Some(index.saturating_add(STATIC.len()).saturating_add(1))
    }

    fn at(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let entry = self.entries.get(index)?;
        entry.text.split_at_checked(entry.name_bytes)
    }

    /// Makes room for `cost` bytes, as far as that is possible.
    fn evict(&mut self, cost: usize) {
        while self.size.saturating_add(cost) > self.size_max {
            let Some(entry) = self.entries.pop_back() else {
                return;
            };
            let freed = entry.text.len().saturating_add(ENTRY_BYTES);
            self.size = self.size.saturating_sub(freed);
        }
    }

    #[cfg(test)]
    pub(super) fn size(&self) -> usize {
        self.size
    }
}

/// Index of the first static field of this name.
pub(super) fn static_name(name: &[u8]) -> Option<usize> {
    Some(match name {
        b":authority" => 1,
        b":method" => 2,
        b":path" => 4,
        b":scheme" => 6,
        b":status" => 8,
        b"accept-charset" => 15,
        b"accept-encoding" => 16,
        b"accept-language" => 17,
        b"accept-ranges" => 18,
        b"accept" => 19,
        b"access-control-allow-origin" => 20,
        b"age" => 21,
        b"allow" => 22,
        b"authorization" => 23,
        b"cache-control" => 24,
        b"content-disposition" => 25,
        b"content-encoding" => 26,
        b"content-language" => 27,
        b"content-length" => 28,
        b"content-location" => 29,
        b"content-range" => 30,
        b"content-type" => 31,
        b"cookie" => 32,
        b"date" => 33,
        b"etag" => 34,
        b"expect" => 35,
        b"expires" => 36,
        b"from" => 37,
        b"host" => 38,
        b"if-match" => 39,
        b"if-modified-since" => 40,
        b"if-none-match" => 41,
        b"if-range" => 42,
        b"if-unmodified-since" => 43,
        b"last-modified" => 44,
        b"link" => 45,
        b"location" => 46,
        b"max-forwards" => 47,
        b"proxy-authenticate" => 48,
        b"proxy-authorization" => 49,
        b"range" => 50,
        b"referer" => 51,
        b"refresh" => 52,
        b"retry-after" => 53,
        b"server" => 54,
        b"set-cookie" => 55,
        b"strict-transport-security" => 56,
        b"transfer-encoding" => 57,
        b"user-agent" => 58,
        b"vary" => 59,
        b"via" => 60,
        b"www-authenticate" => 61,
        _ => return None,
    })
}

/// Index of exactly this static field, whose name begins at the index `first`.
pub(super) fn static_field(first: usize, name: &[u8], value: &[u8]) -> Option<usize> {
    let mut same = STATIC
        .get(first.saturating_sub(1)..)?
        .iter()
        .take_while(|(other, _)| *other == name);
    let index = same.position(|(_, other)| *other == value)?;
    Some(first.saturating_add(index))
}

#[cfg(test)]
mod tests {
    use super::{STATIC, static_field, static_name};

    #[test]
    fn names_and_fields_are_found_where_the_table_has_them() {
        for (index, (name, value)) in (1..).zip(STATIC) {
            let first = STATIC.iter().position(|(other, _)| *other == name);
            assert_eq!(static_name(name), first.map(|first| first + 1));
            let found = static_name(name).and_then(|first| static_field(first, name, value));
            assert_eq!(found, Some(index));
        }
        assert_eq!(static_name(b"grpc-status"), None);
        assert_eq!(static_field(8, b":status", b"201"), None);
    }
}
