//! What a connection speaks: [`H1`] or [`H2`], behind the lock of its connection. What is to be told of it is
//! gathered in [`Outcomes`]: code of the application does not run while the lock is held.

pub(crate) mod exchange;
mod h1;
mod h2;

pub(crate) use exchange::{Exchange, Outcomes};
pub(crate) use h1::H1;
pub(crate) use h2::H2;

/// What a connection speaks.
#[expect(
    clippy::large_enum_variant,
    reason = "most connections speak HTTP/1.1, whose state is there without an allocation"
)]
pub(crate) enum Wire {
    Single(H1),
    Shared(Box<H2>),
}

impl Default for Wire {
    fn default() -> Self {
        Self::Single(H1::default())
    }
}

impl Wire {
    /// The exchanges that are under way.
    pub(crate) fn exchanges(&self) -> Box<dyn Iterator<Item = &Exchange> + '_> {
        match self {
            Self::Single(h1) => Box::new(h1.exchange.iter()),
            Self::Shared(h2) => Box::new(h2.exchanges.values()),
        }
    }

    pub(crate) fn has_output(&self) -> bool {
        match self {
            Self::Single(h1) => h1.has_output(),
            Self::Shared(h2) => !h2.output.is_empty(),
        }
    }

    /// It takes requests, and has those that waited for it.
    pub(crate) fn note_opened(&mut self) {
        match self {
            Self::Single(h1) => h1.was_kept |= h1.is_idle(),
            Self::Shared(h2) => h2.was_kept |= h2.exchanges.is_empty(),
        }
    }
}
