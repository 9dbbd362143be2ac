//! Paths without parameters: a table whose keys are routes, searched with the paths of requests.
//!
//! The keys are the application's, so a client cannot make them collide, and a hash of two
//! instructions for every eight bytes is good enough. Hashing and comparing both go by words, without a call:
//! for the short paths that services have, that is half of what a general table costs.

/// What a path without parameters leads to.
#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    path: Box<[u8]>,
    /// Index of its node.
    pub(crate) node: usize,
    /// Its route for `GET`, if it has one.
    pub(crate) get: Option<T>,
}

/// A table with open addressing; at most a quarter of it is in use.
#[derive(Clone, Debug)]
pub(crate) struct ExactPaths<T> {
    slots: Vec<Option<Entry<T>>>,
    n_entries: usize,
}

impl<T> Default for ExactPaths<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            n_entries: 0,
        }
    }
}

impl<T> ExactPaths<T> {
    /// What `path` leads to.
    #[inline]
    pub(crate) fn get(&self, path: &[u8]) -> Option<&Entry<T>> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash(path) & mask;
        loop {
            let entry = self.slots.get(at)?.as_ref()?;
            if is_same(&entry.path, path) {
                return Some(entry);
            }
            at = (at + 1) & mask;
        }
    }

    /// The entry of `path`, made for `node` if there is none yet.
    pub(crate) fn entry(&mut self, path: &[u8], node: usize) -> &mut Entry<T> {
        if self.n_entries * 4 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash(path) & mask;
        while self.slots[at]
            .as_ref()
            .is_some_and(|entry| *entry.path != *path)
        {
            at = (at + 1) & mask;
        }
        let slot = &mut self.slots[at];
        self.n_entries += usize::from(slot.is_none());
        slot.get_or_insert_with(|| Entry {
            path: path.into(),
            node,
            get: None,
        })
    }

    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(8);
        let entries = std::mem::take(&mut self.slots);
        self.slots.resize_with(slots, || None);
        for entry in entries.into_iter().flatten() {
            let mut at = hash(&entry.path) & (slots - 1);
            while self.slots[at].is_some() {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = Some(entry);
        }
    }
}

#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the high half is folded into what is kept"
)]
fn hash(path: &[u8]) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15; // odd, and without a pattern: 2^64 over the golden ratio
    let mut hash = path.len() as u64;
    let mut rest = path;
    while let Some((word, after)) = rest.split_first_chunk() {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        hash ^= hash >> 32;
        rest = after;
    }
    hash = (hash ^ tail(rest)).wrapping_mul(FACTOR);
    (hash ^ (hash >> 32)) as usize
}

#[inline]
fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    while let (Some((a, after_a)), Some((b, after_b))) =
        (one.split_first_chunk::<8>(), other.split_first_chunk::<8>())
    {
        if a != b {
            return false;
        }
        (one, other) = (after_a, after_b);
    }
    tail(one) == tail(other)
}

/// Less than eight bytes as a word; different bytes of one length make different words.
#[inline]
fn tail(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << 32;
    }
    match *bytes {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(a) | u64::from(b) << 8,
        [a, b, c, ..] => u64::from(a) | u64::from(b) << 8 | u64::from(c) << 16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_entered_and_nothing_else() {
        let mut table = ExactPaths::<()>::default();
        assert!(table.get(b"/").is_none());
        let paths: Vec<String> = (0..500)
            .map(|n| format!("/{}", "ab".repeat(n % 23)) + &n.to_string())
            .collect();
        for (node, path) in paths.iter().enumerate() {
            table.entry(path.as_bytes(), node);
        }
        for (node, path) in paths.iter().enumerate() {
            assert_eq!(table.entry(path.as_bytes(), 1000).node, node);
            let found = table.get(path.as_bytes()).expect("it was entered");
            assert_eq!((found.node, &*found.path), (node, path.as_bytes()));
            assert!(table.get(format!("{path}.").as_bytes()).is_none());
            assert!(table.get(&path.as_bytes()[1..]).is_none());
        }
    }

    #[test]
    fn every_byte_counts() {
        for length in 0..40 {
            let path = vec![b'a'; length];
            assert!(is_same(&path, &path));
            for at in 0..length {
                let mut other = path.clone();
                other[at] = b'b';
                assert!(!is_same(&path, &other), "{length} {at}");
                assert_ne!(hash(&path), hash(&other), "{length} {at}");
            }
        }
    }

    #[test]
    fn similar_paths_are_spread() {
        let mut table = ExactPaths::<()>::default();
        for n in 0..1000 {
            table.entry(format!("/api/v1/{n:04}/settings").as_bytes(), n);
        }
        let longest = table.slots.split(Option::is_none).map(<[_]>::len).max();
        assert!(longest < Some(16), "{longest:?}");
    }
}
