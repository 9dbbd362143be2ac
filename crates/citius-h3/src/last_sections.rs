//! The field sections that a connection has read and sent last: clients repeat themselves, and so do responses.

use alloc::vec::Vec;

use citius_http::multiplexed::Facts;
use citius_http::{FAST_PATHS, Head};

use crate::seam::Context;

/// The last section that was read, and what it means.
#[derive(Debug)]
pub(crate) struct LastSection {
    pub(crate) section: Vec<u8>,
    pub(crate) generation: u64,
    pub(crate) required: u64,
    pub(crate) ended: bool,
    pub(crate) head: Head,
    pub(crate) facts: Facts,
}

/// The field section of the last plain 200: most responses begin like the one before, and many are as long.
#[derive(Debug, Default)]
pub(crate) struct Template {
    /// Empty at first.
    pub(crate) section: Vec<u8>,
    server: Vec<u8>,
    date: Vec<u8>,
    pub(crate) media_type: Vec<u8>,
    length: u64,
}

impl Template {
    #[inline]
    pub(crate) fn is_for(&self, cx: &Context<'_>, media_type: &[u8], length: u64) -> bool {
        FAST_PATHS
            && self.length == length
            && !self.section.is_empty()
            && self.media_type == media_type
            && self.date == cx.date
            && self.server == cx.server
    }

    pub(crate) fn keep(
        &mut self,
        cx: &Context<'_>,
        media_type: &[u8],
        length: u64,
        section: &[u8],
    ) {
        for (place, bytes) in [
            (&mut self.section, section),
            (&mut self.server, cx.server),
            (&mut self.date, cx.date),
            (&mut self.media_type, media_type),
        ] {
            place.clear();
            place.extend_from_slice(bytes);
        }
        self.length = length;
    }
}
