use super::{Catalogue, Coded, Decoder, Encoder, Section, Tools, encode_integer, integer};
use crate::wire::Fault;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Section, Fault> {
    decoder.decode(&mut Tools::default(), block)
}

fn status(status: u16) -> Section {
    Section {
        status: Some(status),
        ..Section::default()
    }
}

#[test]
fn integers_of_the_specification() {
    for (value, n_prefix, bytes) in [
        (10, 5, &[10][..]),
        (1_337, 5, &[31, 154, 10]),
        (42, 8, &[42]),
        (31, 5, &[31, 0]),
    ] {
        let mut output = Vec::new();
        encode_integer(0, n_prefix, value, &mut output);
        assert_eq!(output, bytes);
        assert_eq!(integer(&mut &output[..], n_prefix), Ok(value));
    }
    for endless in [&[31, 128][..], &[31, 255, 255, 255, 255, 0], &[]] {
        assert_eq!(integer(&mut &endless[..], 5), Err(Fault::Hpack));
    }
}

#[test]
fn answers_of_the_specification() {
    // RFC 7541 Appendix C.6: three answers with Huffman codes, in a table of 256 bytes.
    let blocks: [&[u8]; 3] = [
        b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\
          \x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\
          \x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3",
        b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf",
        b"\x88\xc1\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x84\
          \xa6\x2d\x1b\xff\xc0\x5a\x83\x9b\xd9\xab\x77\xad\x94\xe7\x82\x1d\xd7\xf2\xe6\xc7\xb3\x35\
          \xdf\xdf\xcd\x5b\x39\x60\xd5\xaf\x27\x08\x7f\x36\x72\xc1\xab\x27\x0f\xb5\x29\x1f\x95\x87\
          \x31\x60\x65\xc0\x03\xed\x4e\xe5\xb1\x06\x3d\x50\x07",
    ];
    let mut decoder = Decoder {
        n_bytes_max: 256,
        ..Decoder::default()
    };
    let sizes = [222, 222, 215];
    for ((block, size), code) in blocks.into_iter().zip(sizes).zip([302, 307, 200]) {
        assert_eq!(decode(&mut decoder, block), Ok(status(code)));
        assert_eq!(decoder.n_bytes, size, "{code}");
    }
}

#[test]
fn lengths_and_broken_rules_are_noted() {
    let field = |name: &str, value: &str| {
        let mut bytes = vec![0, u8::try_from(name.len()).expect("short")];
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(u8::try_from(value.len()).expect("short"));
        bytes.extend_from_slice(value.as_bytes());
        bytes
    };
    let read = |fields: &[(&str, &str)]| {
        let block: Vec<u8> = fields.iter().flat_map(|(n, v)| field(n, v)).collect();
        decode(&mut Decoder::default(), &block).expect("a sound block")
    };
    let sound = read(&[(":status", "200"), ("content-length", "12"), ("x", "y")]);
    assert_eq!(
        (sound.status, sound.content_length, sound.is_malformed),
        (Some(200), Some(12), false)
    );
    for fields in [
        [(":status", "2x0"), ("a", "b")],
        [(":status", "200"), (":status", "200")],
        [(":status", "200"), ("Upper", "b")],
        [(":status", "200"), ("connection", "close")],
        [(":status", "200"), (":path", "/")],
        [("content-length", "1"), ("content-length", "2")],
        [(":status", "200"), ("content-length", "-1")],
        [(":status", "200"), ("a", "b\r\nc")],
    ] {
        assert!(read(&fields).is_malformed, "{fields:?}");
    }
    assert!(!read(&[("content-length", "1"), ("content-length", "1")]).is_malformed);
}

#[test]
fn what_cannot_be_decoded_is_a_fault() {
    for block in [
        &b"\x80"[..],
        b"\xbe",
        b"\x40",
        b"\x40\x05ab",
        b"\x48\x82\xff\xff",
        b"\x88\x20",
        b"\x3f\xe2\x1f",
    ] {
        assert_eq!(
            decode(&mut Decoder::default(), block),
            Err(Fault::Hpack),
            "{block:?}"
        );
    }
}

#[test]
fn entries_leave_when_the_table_shrinks() {
    let mut decoder = Decoder::default();
    assert_eq!(
        decode(&mut decoder, b"\x48\x03204\x48\x03206").map(|s| s.is_malformed),
        Ok(true)
    );
    assert_eq!(decode(&mut decoder, b"\xbf"), Ok(status(204)));
    // 42 bytes are room for the newer one.
    assert_eq!(decode(&mut decoder, b"\x3f\x0b\xbe"), Ok(status(206)));
    assert_eq!(decode(&mut decoder, b"\xbf"), Err(Fault::Hpack));
}

#[test]
fn fields_are_a_byte_each_from_the_second_time_on() {
    let mut catalogue = Catalogue::default();
    let fields = [
        catalogue.code(":method", "GET"),
        catalogue.code(":authority", "a:1"),
        catalogue.code("x-y", "z"),
    ];
    assert_eq!(fields[0], Coded::Plain(vec![0x82]));
    let mut encoder = Encoder::default();
    let mut block = |fields: &[Coded]| {
        let mut output = Vec::new();
        encoder.encode(fields, &mut output);
        output
    };
    assert_eq!(block(&fields), b"\x82\x41\x03a:1\x40\x03x-y\x01z");
    assert_eq!(block(&fields), b"\x82\xbf\xbe");
    // A later field moves those before it back.
    let other = [
        catalogue.code(":authority", "a:1"),
        catalogue.code("x-y", "w"),
    ];
    assert_eq!(block(&other), b"\xbf\x40\x03x-y\x01w");
    assert_eq!(block(&fields), b"\x82\xc0\xbf");
}

#[test]
fn what_does_not_fit_the_table_is_never_put_there() {
    let mut catalogue = Catalogue::default();
    let long = "v".repeat(3_000);
    assert!(matches!(catalogue.code("a", &long), Coded::Indexed { .. }));
    assert!(matches!(catalogue.code("b", &long), Coded::Plain(_)));
    assert!(matches!(
        catalogue.code("a", &long),
        Coded::Indexed { id: 0, .. }
    ));
}

#[test]
fn a_peer_without_a_table_gets_literals() {
    let mut catalogue = Catalogue::default();
    let fields = [
        catalogue.code(":authority", "a"),
        catalogue.code("user-agent", "b"),
        catalogue.code("x", "c"),
    ];
    let mut encoder = Encoder::default();
    let mut output = Vec::new();
    encoder.encode(&fields, &mut output);
    encoder.limit(0);
    encoder.limit(0);
    output.clear();
    encoder.encode(&fields, &mut output);
    assert_eq!(output, b"\x20\x01\x01a\x0f\x2b\x01b\x00\x01x\x01c");
    output.clear();
    encoder.encode(&fields, &mut output);
    assert_eq!(output, b"\x01\x01a\x0f\x2b\x01b\x00\x01x\x01c");
}
