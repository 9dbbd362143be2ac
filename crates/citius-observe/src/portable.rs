//! Systems other than Linux: writing lines by Rust's standard library, which waits for the reader of a pipe.

use std::io::{Result, Write};

use crate::writer::Sink;

/// Whether writes of several processes mix. There is one process here.
pub(crate) fn is_stream(_sink: &Sink) -> bool {
    false
}

/// Writes all of `piece`.
pub(crate) fn write(sink: &Sink, piece: &[u8], _must_end: impl Fn() -> bool) -> Result<()> {
    match sink {
        Sink::Stdout => {
            let mut stdout = std::io::stdout().lock();
            stdout.write_all(piece)?;
            stdout.flush()
        }
        Sink::Open(file) => (&*file).write_all(piece),
    }
}
