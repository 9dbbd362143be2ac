//! What HTTP/2 and HTTP/3 have in common: rules of heads and trailers, states of streams, priorities, and how HPACK and QPACK
//! spell integers and strings.
//!
//! Each protocol crate has frames, tables and budgets of its own; a rule that both RFCs have is here, once.

pub mod head;
pub mod huffman;
pub mod priority;
pub mod spelling;
pub mod state;

pub use head::{Builder, ENTRY_BYTES, Facts, Scratch, Trailers, entry_bytes, is_malformed};
pub use priority::{Early, Priority};
pub use state::{Following, State};
