//! Systems other than Linux: writing lines by Rust's standard library, which waits for the reader of a pipe.

use std::io::{ErrorKind, Result, Write};

use crate::sink::Sink;

/// Whether writes of several processes mix. There is one process here.
pub(crate) fn is_stream(_sink: &Sink) -> bool {
    false
}

/// Writes all of `piece`, which is what has not been written.
pub(crate) fn write(sink: &Sink, piece: &mut &[u8], _must_end: impl Fn() -> bool) -> Result<()> {
    match sink {
        Sink::Stdout => {
            let mut stdout = std::io::stdout().lock();
            write_to(&mut stdout, piece)?;
            stdout.flush()
        }
        Sink::Open(file) => write_to(&mut &*file, piece),
    }
}

fn write_to(file: &mut impl Write, piece: &mut &[u8]) -> Result<()> {
    while !piece.is_empty() {
        match file.write(piece) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(n) => *piece = &piece[n..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
