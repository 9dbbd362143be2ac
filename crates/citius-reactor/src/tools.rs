//! What the protocols of all connections share: the clock, the limits, reusable heads and the fields of each response.

use citius_h1::{Context, Template};
use citius_http::{Fields, HeadPool, Limits};

use crate::clock::Clock;

/// What protocols may look at, apart from the connections so that both can be borrowed.
#[derive(Debug)]
pub(crate) struct Tools {
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) heads: HeadPool,
    pub(crate) template: Template,
    /// The `server` field line, or nothing.
    pub(crate) server: Vec<u8>,
    /// Fields of every response that does not say the same itself.
    pub(crate) default_fields: Fields,
}

impl Tools {
    /// Reads the time.
    pub(crate) fn refresh_clock(&mut self) {
        if self.clock.refresh() {
            self.template.clear();
        }
    }

    #[inline]
    pub(crate) fn context(&mut self) -> Context<'_> {
        Context {
            now: self.clock.now,
            limits: &self.limits,
            heads: &mut self.heads,
            server: &self.server,
            date: self.clock.date(),
            default_fields: &self.default_fields,
            template: &mut self.template,
        }
    }
}
