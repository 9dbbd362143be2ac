//! The examples of RFC 9204 appendix B, and what encoders must not write. `tests/vectors.rs` has what another implementation
//! writes.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Decoder, Encoder, Malformed, Secrecy, Section};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let pairs = digits.chunks(2);
    let pair = |pair: &[u8]| {
        core::str::from_utf8(pair)
            .ok()
            .and_then(|text| u8::from_str_radix(text, 16).ok())
    };
    pairs
        .map(|digits| pair(digits).expect("hexadecimal"))
        .collect()
}

fn taken(decoder: &mut Decoder, input: &[u8]) -> Result<u32, Malformed> {
    let mut n_taken = 0;
    decoder.instructions(input, &mut n_taken).map(|()| n_taken)
}

fn taken_of_decoder(input: &mut &[u8]) -> Result<u32, Malformed> {
    let mut n_taken = 0;
    crate::take_instructions_of_decoder(input, &mut n_taken).map(|()| n_taken)
}

fn read(decoder: &mut Decoder, section: &[u8]) -> Result<(Section, String), Malformed> {
    let mut text = String::new();
    let section = decoder.decode(section, |name, value| {
        text.push_str(&String::from_utf8_lossy(name));
        text.push_str(": ");
        text.push_str(&String::from_utf8_lossy(value));
        text.push('\n');
        true
    })?;
    Ok((section, text))
}

#[test]
fn the_examples_of_appendix_b() {
    let mut decoder = Decoder::new(220);
    // B.1: a literal with a name reference.
    let section = bytes("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    let (done, text) = read(&mut decoder, &section).unwrap();
    assert_eq!(
        (done, text.as_str()),
        (Section::Read(0), ":path: /index.html\n")
    );
    // B.2: insertions; the section comes before them.
    let section = bytes("0381 10 11");
    assert_eq!(
        read(&mut decoder, &section),
        Ok((Section::Blocked(2), String::new()))
    );
    let stream = bytes("3fbd01 c00f7777772e6578616d706c652e636f6d c10c2f73616d706c652f70617468");
    assert_eq!(taken(&mut decoder, &stream), Ok(3));
    assert_eq!(decoder.sizes(), (106, 0));
    let (done, text) = read(&mut decoder, &section).unwrap();
    assert_eq!(done, Section::Read(2));
    assert_eq!(text, ":authority: www.example.com\n:path: /sample/path\n");
    let mut out = Vec::new();
    decoder.acknowledge(4, 2, &mut out);
    assert_eq!(out, bytes("84"));
    // B.3: a speculative insertion.
    let stream = bytes("4a637573746f6d2d6b65790c637573746f6d2d76616c7565");
    assert_eq!(taken(&mut decoder, &stream), Ok(1));
    assert_eq!(decoder.sizes(), (160, 0));
    out.clear();
    decoder.count_insertions(&mut out);
    assert_eq!(out, bytes("01"));
    // B.4: a duplicate, and a stream that is given up.
    assert_eq!(taken(&mut decoder, &bytes("02")), Ok(1));
    assert_eq!(decoder.sizes(), (217, 0));
    let (done, text) = read(&mut decoder, &bytes("0500 80 c1 81")).unwrap();
    assert_eq!(done, Section::Read(4));
    assert_eq!(
        text,
        ":authority: www.example.com\n:path: /\ncustom-key: custom-value\n"
    );
    out.clear();
    decoder.cancel(8, &mut out);
    assert_eq!(out, bytes("48"));
    // B.5: what is inserted evicts the oldest.
    assert_eq!(
        taken(&mut decoder, &bytes("810d637573746f6d2d76616c756532")),
        Ok(1)
    );
    assert_eq!(decoder.sizes(), (215, 0));
    assert_eq!(decoder.insert_count(), 5);
}

#[test]
fn sections_wait_for_their_insertions_and_no_longer() {
    let mut decoder = Decoder::new(4096);
    assert_eq!(
        read(&mut decoder, &bytes("0200 80")),
        Ok((Section::Blocked(1), String::new()))
    );
    assert_eq!(taken(&mut decoder, &bytes("3fe11f c00161")), Ok(2));
    let (done, text) = read(&mut decoder, &bytes("0200 80")).unwrap();
    assert_eq!((done, text.as_str()), (Section::Read(1), ":authority: a\n"));
}

#[test]
fn instructions_that_no_encoder_may_write() {
    for (hex, why) in [
        ("3fe21f", "a capacity above ours"),
        ("c00161", "an insertion before a capacity"),
        ("3fe11f 80 0161", "a name reference to nothing"),
        ("3fe11f 00", "a duplicate of nothing"),
        ("3fe11f ff24 0161", "a static name that is not there"),
        ("3f01 c0 02 6162 6162", "an entry above the capacity"),
        (
            "3fe11f 4161 ff ffffffffffffffffff",
            "a length of more than 62 bits",
        ),
        ("3fe11f c0 ff ff ff 7f", "a string that can't fit"),
        ("3fe11f c0 84ffffffff", "Huffman: the end of the string"),
    ] {
        assert_eq!(
            taken(&mut Decoder::new(4096), &bytes(hex)),
            Err(Malformed),
            "{why}"
        );
    }
}

#[test]
fn sections_that_no_encoder_may_write() {
    for (hex, why) in [
        ("", "no prefix"),
        ("00", "half a prefix"),
        ("0000 ff24", "a static index that is not there"),
        ("0000 80", "a reference without a requirement"),
        ("0000 10", "the same behind the base"),
        ("0200 10", "a reference beyond what is required"),
        ("0200 81", "a reference before the table"),
        ("0281 80", "a negative base"),
        ("ff0200 80", "a requirement above any possible"),
        ("0000 5f", "an index that does not end"),
        ("0000 510b 61", "a string that does not end"),
        ("0000 5184ffffffff", "Huffman: the end of the string"),
        ("0000 2201 61", "a name that does not end"),
    ] {
        let mut decoder = Decoder::new(4096);
        assert_eq!(taken(&mut decoder, &bytes("3fe11f c00161")), Ok(2));
        assert_eq!(read(&mut decoder, &bytes(hex)), Err(Malformed), "{why}");
    }
    let mut decoder = Decoder::new(0);
    assert_eq!(
        read(&mut decoder, &bytes("0100 80")),
        Err(Malformed),
        "no table at all"
    );
}

#[test]
fn an_entry_that_was_evicted_is_gone() {
    let mut decoder = Decoder::new(64);
    assert_eq!(taken(&mut decoder, &bytes("3f21 c00161 c00162")), Ok(3));
    assert_eq!(decoder.insert_count(), 2);
    // Capacity 64 holds one entry of 43 bytes.
    assert_eq!(read(&mut decoder, &bytes("0300 81")), Err(Malformed));
    assert!(read(&mut decoder, &bytes("0300 80")).is_ok());
}

#[test]
fn an_entry_may_be_duplicated_into_its_own_place() {
    let mut decoder = Decoder::new(64);
    assert_eq!(taken(&mut decoder, &bytes("3f21 c00161 00 8001 62")), Ok(4));
    let (_, text) = read(&mut decoder, &bytes("0400 80")).unwrap();
    assert_eq!(text, ":authority: b\n");
}

#[test]
fn instructions_come_in_any_pieces_and_wait_within_a_bound() {
    let stream = bytes(
        "3fe11f c00f7777772e6578616d706c652e636f6d 4a637573746f6d2d6b65790c637573746f6d2d76616c7565 00 81037a7a7a",
    );
    let mut whole = Decoder::new(4096);
    assert_eq!(taken(&mut whole, &stream), Ok(5));
    let section = bytes("0500 80 81 82 83");
    let expected = read(&mut whole, &section).unwrap();
    for n_bytes in 1..stream.len() {
        let mut cut = Decoder::new(4096);
        let n_taken: u32 = stream
            .chunks(n_bytes)
            .map(|piece| taken(&mut cut, piece).unwrap())
            .sum();
        assert_eq!(n_taken, 5);
        assert_eq!(read(&mut cut, &section).unwrap(), expected);
    }
    // A literal whose strings are as long as may be: the bound of what waits.
    let mut decoder = Decoder::new(4096);
    taken(&mut decoder, &bytes("3fe11f 7f e17f")).unwrap();
    for _ in 0..16_384 {
        taken(&mut decoder, b"\0").unwrap();
        assert!(decoder.sizes().1 <= 2 * 4 * 4096 + 16);
    }
}

#[test]
fn a_bomb_is_read_without_copies_and_given_up_at_the_first_wish() {
    let mut decoder = Decoder::new(4096);
    let mut stream = bytes("3fe11f");
    let value = [b'v'; 4000];
    citius_http::multiplexed::spelling::put_string(&mut stream, 0x40, 5, b"x");
    citius_http::multiplexed::spelling::put_string(&mut stream, 0, 7, &value);
    taken(&mut decoder, &stream).unwrap();
    let section = [&[2, 0][..], &[0x80; 16_000], &[0x80; 14_000]].concat();
    let mut n_fields = 0;
    let done = decoder.decode(&section, |_, _| {
        n_fields += 1;
        n_fields < 8
    });
    assert_eq!((done, n_fields), (Ok(Section::Read(1)), 8));
    // A byte duplicates 4 000; the table holds one such entry, and none is copied.
    assert_eq!(taken(&mut decoder, &[0; 16_000]), Ok(16_000));
    assert!(decoder.sizes().0 <= 4096);
}

#[test]
fn what_is_written_is_read() {
    let fields: [(&[u8], &[u8], Secrecy); 7] = [
        (b":status", b"200", Secrecy::Public),
        (b":status", b"599", Secrecy::Public),
        (
            b"content-type",
            b"text/html; charset=utf-8",
            Secrecy::Public,
        ),
        (b"server", b"citius", Secrecy::Public),
        (b"x-a-name-of-some-length", b"a value", Secrecy::Public),
        (b"set-cookie", b"a=b", Secrecy::Secret),
        (b"x-secret", b"", Secrecy::Secret),
    ];
    let mut section = Vec::new();
    Encoder::begin(&mut section);
    for (name, value, secrecy) in fields {
        Encoder::field(&mut section, name, value, secrecy);
    }
    let mut decoder = Decoder::new(0);
    let mut n_read = 0;
    decoder
        .decode(&section, |name, value| {
            assert_eq!((name, value), (fields[n_read].0, fields[n_read].1));
            n_read += 1;
            true
        })
        .unwrap();
    assert_eq!(n_read, fields.len());
    let secret = bytes("7e03613d62");
    assert!(
        section.windows(secret.len()).any(|window| window == secret),
        "N is set"
    );
    assert_eq!(section.get(2), Some(&0xd9));
}

#[test]
fn a_decoder_has_nothing_to_say_to_an_encoder_without_a_table() {
    let mut cancellations = &bytes("44 7f80 01")[..];
    assert_eq!(taken_of_decoder(&mut cancellations), Ok(2));
    assert!(cancellations.is_empty());
    let mut half = &bytes("7f80")[..];
    assert_eq!(taken_of_decoder(&mut half), Ok(0));
    assert_eq!(half.len(), 2);
    for wrong in ["80", "01", "00"] {
        assert_eq!(taken_of_decoder(&mut &bytes(wrong)[..]), Err(Malformed));
    }
}
