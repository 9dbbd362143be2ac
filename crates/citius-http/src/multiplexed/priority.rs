//! Urgency and increments (RFC 9218): whose data leaves first.
//!
//! Only the two parameters are read, as a dictionary of structured fields (RFC 8941 §3.2) roughly; what is
//! malformed is ignored, as §5 asks for.

use alloc::vec::Vec;

/// How urgent a response is, and whether pieces of it are of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// From 0, the most urgent, to 7.
    pub urgency: u8,
    /// Shares the connection with others of its urgency instead of following or preceding them.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// The priority that a `priority` field or a `PRIORITY_UPDATE` spells.
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|&byte| byte == b',') {
            let member = member.trim_ascii();
            let bare = member.split(|&byte| byte == b';').next();
            match bare.unwrap_or_default() {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit.wrapping_sub(b'0'),
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

/// Priorities of requests that have not come yet (§7), the newest of each, in the order of their streams.
#[derive(Debug, Default)]
pub struct Early(Vec<(u32, Priority)>);

impl Early {
    #[inline]
    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keeps a priority for `id`. False if there is one for `most` other streams: then it is not kept.
    pub fn keep(&mut self, id: u32, priority: Priority, most: usize) -> bool {
        match self.0.binary_search_by_key(&id, |&(id, _)| id) {
            Ok(index) => {
                if let Some(kept) = self.0.get_mut(index) {
                    kept.1 = priority;
                }
            }
            Err(_) if self.0.len() >= most => return false,
            Err(index) => self.0.insert(index, (id, priority)),
        }
        true
    }

    /// The priority kept for `id`. Those of lower streams are dropped, as they can't be opened any more.
    pub fn take(&mut self, id: u32) -> Option<Priority> {
        let end = self.0.partition_point(|&(kept, _)| kept <= id);
        let last = self.0.drain(..end).next_back();
        last.and_then(|(kept, priority)| (kept == id).then_some(priority))
    }

    /// The priority kept for `id`, where streams may begin out of order.
    pub fn take_only(&mut self, id: u32) -> Option<Priority> {
        let index = self.0.binary_search_by_key(&id, |&(id, _)| id).ok()?;
        Some(self.0.remove(index).1)
    }

    /// Drops the priorities of streams that can't be opened any more.
    pub fn retain(&mut self, may_open: impl Fn(u32) -> bool) {
        self.0.retain(|&(id, _)| may_open(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_browsers_send_and_ignores_the_rest() {
        for (text, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=5, i", 5, true),
            ("i=?1,u=7", 7, true),
            ("i, i=?0", 3, false),
            ("u=8, x=1;u=2", 3, false),
            ("u=1;p=2", 1, false),
        ] {
            let expected = Priority {
                urgency,
                incremental,
            };
            assert_eq!(Priority::parse(text.as_bytes()), expected, "{text}");
        }
    }
}
