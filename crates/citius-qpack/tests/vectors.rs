//! What another implementation's encoder writes: every vector under `vectors/qpack`, its instructions whole and in any pieces.

use std::path::Path;

use citius_qpack::{Decoder, Section};

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits
        .map(|pair| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("hexadecimal")
        })
        .collect()
}

fn read(decoder: &mut Decoder, section: &[u8]) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let done = decoder.decode(section, |name, value| {
        let text = [name, b": ", value].concat();
        fields.push(String::from_utf8(text).expect("the vectors are ASCII"));
        true
    });
    match done.expect("another encoder's section can be read") {
        Section::Read(_) => Some(fields),
        Section::Blocked(_) => None,
    }
}

/// Plays a vector with instructions in pieces of `n_bytes`; how many of its sections had to wait.
fn play(text: &str, n_bytes: usize) -> usize {
    let mut lines = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .peekable();
    let capacity = lines.next().and_then(|line| line.strip_prefix("table "));
    let mut decoder = Decoder::new(capacity.expect("a table").parse().expect("a number"));
    let (mut n_blocked, mut section) = (0, Vec::new());
    while let Some(line) = lines.next() {
        let (word, rest) = line.split_once(' ').expect("a word and what follows");
        match word {
            "encoder" => {
                for piece in bytes(rest).chunks(n_bytes) {
                    decoder
                        .instructions(piece, &mut 0)
                        .expect("another encoder's instructions can be read");
                }
            }
            "section" => {
                section = bytes(rest.split_once(' ').expect("stream and bytes").1);
                n_blocked += usize::from(read(&mut decoder, &section).is_none());
            }
            _ => {
                let mut expected = vec![rest.to_owned()];
                while let Some(field) = lines.peek().and_then(|line| line.strip_prefix("= ")) {
                    expected.push(field.to_owned());
                    lines.next();
                }
                assert_eq!(read(&mut decoder, &section), Some(expected));
            }
        }
    }
    n_blocked
}

#[test]
fn sections_of_another_encoder_are_read_however_its_instructions_are_cut() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/qpack");
    let (mut n_files, mut n_blocked) = (0, 0);
    for entry in std::fs::read_dir(folder).expect("the vectors are there") {
        let text = std::fs::read_to_string(entry.expect("a file").path()).expect("a text");
        n_files += 1;
        n_blocked += play(&text, usize::MAX);
        for n_bytes in [1, 2, 3, 7] {
            play(&text, n_bytes);
        }
    }
    assert_eq!(n_files, 5);
    assert!(
        n_blocked > 0,
        "some sections come before their instructions"
    );
}
