//! What a session knows of what it has sent.

mod path;

pub use path::Path;
