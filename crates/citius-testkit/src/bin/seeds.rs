//! `seeds`: writes the inputs of `vectors/` as corpora for the targets in `fuzz/`; run it from the checkout.
//!
//! Each seed file is eight bytes that choose cuts and moods, then what the peer sends.

use std::io;
use std::path::Path;

use citius_testkit::{client, transcript};

fn main() -> io::Result<()> {
    let inputs = transcript::inputs_under(Path::new("vectors/h1"))?;
    let (connection, chunked) = (
        Path::new("fuzz/corpus/h1_connection"),
        Path::new("fuzz/corpus/h1_chunked"),
    );
    for folder in [connection, chunked] {
        std::fs::create_dir_all(folder)?;
    }
    for (index, input) in inputs.iter().enumerate() {
        let seed = u64::try_from(index).unwrap_or(0).to_le_bytes();
        let name = format!("vector-{index}");
        std::fs::write(connection.join(&name), [&seed, input.as_slice()].concat())?;
        if let Some(body) = chunked_body(input) {
            std::fs::write(chunked.join(&name), [&seed, body].concat())?;
        }
    }
    let responses = client::all_under(Path::new("vectors/h1-client"))?;
    let client = Path::new("fuzz/corpus/h1_client");
    std::fs::create_dir_all(client)?;
    for (index, (_, transcript)) in responses.iter().enumerate() {
        let seed = u64::try_from(index).unwrap_or(0).to_le_bytes();
        let bytes = [&seed, transcript.input().as_slice()].concat();
        std::fs::write(client.join(format!("vector-{index}")), bytes)?;
    }
    let count = inputs.len() + responses.len();
    eprintln!("{count} inputs written below fuzz/corpus");
    Ok(())
}

/// What follows the first head, if that announces chunks.
fn chunked_body(input: &[u8]) -> Option<&[u8]> {
    let text = input.to_ascii_lowercase();
    let end = text.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = text.get(..end)?;
    let announces = head.windows(7).any(|window| window == b"chunked");
    announces.then(|| input.get(end..)).flatten()
}
