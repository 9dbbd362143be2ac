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
    /// Those of responses of listeners in clear text that redirect, but while one of their connections is in hand.
    other_default_fields: Fields,
}

/// What a browser must not be told over clear text (RFC 6797 §7.2).
const SECURE_ONLY: &[u8] = b"strict-transport-security";

impl Tools {
    pub(crate) fn new(limits: Limits, date: bool, server: Vec<u8>, default_fields: Fields) -> Self {
        Self {
            clock: Clock::new(date),
            limits,
            heads: HeadPool::default(),
            template: Template::default(),
            server,
            other_default_fields: without(&default_fields, SECURE_ONLY),
            default_fields,
        }
    }

    /// Exchanges the fields of responses over TLS and those over clear text that redirect.
    #[cold]
    pub(crate) fn swap_default_fields(&mut self) {
        std::mem::swap(&mut self.default_fields, &mut self.other_default_fields);
        // Its lines are those of the fields until now.
        self.template.clear();
    }

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

fn without(fields: &Fields, name: &[u8]) -> Fields {
    let mut kept = Fields::default();
    for (other, value) in fields.iter() {
        if other != name {
            kept.push(other, value).expect("it was valid before");
        }
    }
    kept
}
