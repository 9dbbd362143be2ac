//! What has come of a message that is not there in full. A protocol that is a value keeps nothing, so its caller does.

/// Bytes that are kept until more have come.
#[derive(Debug, Default)]
pub struct Inbox(Vec<u8>);

/// Memory that is kept behind a long message.
const KEPT_BYTES_MAX: usize = 64 * 1024;

impl Inbox {
    /// Has `read` take what it can of everything that has come; it returns how many bytes it has left, which are kept. Bytes that
    /// are read at once are not copied.
    #[inline]
    pub fn receive(&mut self, bytes: &[u8], read: impl FnOnce(&[u8]) -> usize) {
        if self.0.is_empty() {
            let left = read(bytes).min(bytes.len());
            self.0.extend_from_slice(&bytes[bytes.len() - left..]);
        } else {
            self.0.extend_from_slice(bytes);
            let left = read(&self.0).min(self.0.len());
            self.0.drain(..self.0.len() - left);
            self.0.shrink_to(KEPT_BYTES_MAX);
        }
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes whole words, which end in a space.
    fn words(text: &[u8], taken: &mut Vec<u8>) -> usize {
        let end = text
            .iter()
            .rposition(|&byte| byte == b' ')
            .map_or(0, |at| at + 1);
        taken.extend_from_slice(&text[..end]);
        text.len() - end
    }

    #[test]
    fn what_is_not_whole_comes_again_with_more() {
        let text = b"one two  three four ";
        for first in 0..text.len() {
            for second in first..text.len() {
                let (mut inbox, mut taken) = (Inbox::default(), Vec::new());
                for piece in [&text[..first], &text[first..second], &text[second..]] {
                    inbox.receive(piece, |all| words(all, &mut taken));
                    assert!(text.starts_with(&taken));
                }
                assert_eq!((taken.as_slice(), inbox.is_empty()), (&text[..], true));
            }
        }
    }

    #[test]
    fn what_is_left_is_kept() {
        let mut inbox = Inbox::default();
        inbox.receive(b"ab", <[u8]>::len);
        assert!(!inbox.is_empty());
        inbox.receive(b"c", |all| {
            assert_eq!(all, b"abc");
            1
        });
        inbox.receive(b"", |all| {
            assert_eq!(all, b"c");
            0
        });
        assert!(inbox.is_empty());
    }
}
