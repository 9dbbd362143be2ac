//! Where lines go.

/// Where lines go.
#[derive(Debug)]
pub enum Sink {
    /// Standard output as it is at the moment of writing: after a rotation it is another file.
    Stdout,
    /// A file, pipe or socket of one's own.
    Open(std::fs::File),
}
