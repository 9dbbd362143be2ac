//! UTF-8, checked as it comes (§8.1).

/// How far a text that is still growing has been checked: up to the last whole character.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Text {
    valid: usize,
}

impl Text {
    /// Whether `whole`, which is longer than when it was looked at last, may become a text.
    #[inline]
    pub(crate) fn grows(&mut self, whole: &[u8]) -> bool {
        let rest = whole.get(self.valid..).unwrap_or_default();
        match simdutf8::compat::from_utf8(rest) {
            Ok(_) => {
                self.valid = whole.len();
                true
            }
            Err(error) => {
                self.valid = self.valid.saturating_add(error.valid_up_to());
                // Without a length the bytes are the beginning of a character.
                error.error_len().is_none()
            }
        }
    }

    /// Whether `whole`, of which all has been looked at, ends with a whole character.
    #[inline]
    pub(crate) fn is_complete(self, whole: &[u8]) -> bool {
        self.valid == whole.len()
    }
}

/// Whether `bytes` are a text.
#[inline]
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cut_says_the_same_and_as_early_as_can_be() {
        let good = "κόσμε 𐍈 ﷺ \u{10ffff} \u{d7ff}\u{e000}".as_bytes();
        for cut in 0..=good.len() {
            let mut text = Text::default();
            assert!(text.grows(&good[..cut]));
            assert_eq!(text.is_complete(&good[..cut]), is_text(&good[..cut]));
            assert!(text.grows(good) && text.is_complete(good));
        }
        // Overlong, surrogates, beyond the last code point: the second byte gives them away.
        for bad in [
            &b"\xc0\xaf"[..],
            b"\xe0\x80\xaf",
            b"\xed\xa0\x80",
            b"\xf4\x90\x80\x80",
            b"\xf8\x88\x80\x80\x80",
            b"\x80",
        ] {
            let mut text = Text::default();
            let seen = (1..=bad.len()).find(|&n| !text.grows(&bad[..n]));
            assert!(seen.is_some_and(|n| n <= 2), "{bad:x?} {seen:?}");
        }
    }
}
