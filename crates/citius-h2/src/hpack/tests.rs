//! The examples of RFC 7541, appendix C, and what goes in comes out.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::decoder::Malformed;
use super::{Decoder, Encoder, Indexing};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: String = hex.chars().filter(|c| !c.is_whitespace()).collect();
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<String, Malformed> {
    let mut lines = Vec::new();
    decoder.decode(block, |name, value| {
        let text = [name, b": ", value].concat();
        lines.push(String::from_utf8_lossy(&text).to_string());
    })?;
    Ok(lines.join("\n"))
}

#[track_caller]
fn check(table_bytes: usize, blocks: &[(&str, &str, usize)]) {
    let mut decoder = Decoder::with_table_bytes(table_bytes);
    for (hex, expected, size) in blocks {
        assert_eq!(decode(&mut decoder, &bytes(hex)).as_deref(), Ok(*expected));
        assert_eq!(decoder.table_size(), *size, "{hex}");
    }
}

#[test]
fn c2_single_fields() {
    check(
        4096,
        &[(
            "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
            "custom-key: custom-header",
            55,
        )],
    );
    check(
        4096,
        &[(
            "040c 2f73 616d 706c 652f 7061 7468",
            ":path: /sample/path",
            0,
        )],
    );
    check(
        4096,
        &[(
            "1008 7061 7373 776f 7264 0673 6563 7265 74",
            "password: secret",
            0,
        )],
    );
    check(4096, &[("82", ":method: GET", 0)]);
}

const REQUESTS: [(&str, usize); 3] = [
    (
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com",
        57,
    ),
    (
        ":method: GET\n:scheme: http\n:path: /\n:authority: www.example.com\ncache-control: no-cache",
        110,
    ),
    (
        ":method: GET\n:scheme: https\n:path: /index.html\n:authority: www.example.com\ncustom-key: custom-value",
        164,
    ),
];

#[test]
fn c3_and_c4_requests() {
    for hex in [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ] {
        let blocks: Vec<_> = hex
            .iter()
            .zip(REQUESTS)
            .map(|(hex, (text, size))| (*hex, text, size))
            .collect();
        check(4096, &blocks);
    }
}

const RESPONSES: [(&str, usize); 3] = [
    (
        ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
        222,
    ),
    (
        ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\nlocation: https://www.example.com",
        222,
    ),
    (
        ":status: 200\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:22 GMT\nlocation: https://www.example.com\ncontent-encoding: gzip\nset-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        215,
    ),
];

#[test]
fn c5_and_c6_responses_with_eviction() {
    for hex in [
        [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
        ],
        [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ],
    ] {
        let blocks: Vec<_> = hex
            .iter()
            .zip(RESPONSES)
            .map(|(hex, (text, size))| (*hex, text, size))
            .collect();
        check(256, &blocks);
    }
}

#[test]
fn refuses_what_cannot_be_read() {
    for hex in [
        "80",                   // index 0
        "be",                   // nothing there
        "ff",                   // an integer that does not end
        "ff80 8080 8080 00",    // one that says zero for ever
        "4001",                 // a string that does not end
        "82 20",                // a change of size in the middle
        "3fe2 1f",              // 4 097 bytes of table
        "0085 ffff ffff ff 00", // Huffman: the end of the string
    ] {
        assert_eq!(
            decode(&mut Decoder::new(), &bytes(hex)),
            Err(Malformed),
            "{hex}"
        );
    }
}

#[test]
fn what_is_written_is_read_and_shrinks() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
    let fields: [(&[u8], &[u8], Indexing); 5] = [
        (b":status", b"200", Indexing::Once),
        (b"server", b"citius", Indexing::Keep),
        (b"x-own", b"a value", Indexing::Keep),
        (b"set-cookie", b"a=b", Indexing::Never),
        (b"content-length", b"12345", Indexing::Once),
    ];
    let mut lengths = Vec::new();
    for allowed in [4096, 4096, 4096, 0, 0, 100, 8192] {
        encoder.allow(allowed);
        let mut block = Vec::new();
        encoder.begin(&mut block);
        for (name, value, how) in fields {
            encoder.field(&mut block, name, value, how);
        }
        let text = decode(&mut decoder, &block).unwrap();
        assert_eq!(
            text,
            ":status: 200\nserver: citius\nx-own: a value\nset-cookie: a=b\ncontent-length: 12345"
        );
        lengths.push(block.len());
    }
    assert!(
        lengths[1] < lengths[0] && lengths[1] == lengths[2] && lengths[3] > lengths[0],
        "{lengths:?}"
    );
}

#[test]
fn long_integers_come_back() {
    let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
    for length in [0, 126, 127, 128, 254, 255, 16_383, 16_384, 100_000] {
        let value = "v".repeat(length);
        let mut block = Vec::new();
        encoder.field(&mut block, b"x", value.as_bytes(), Indexing::Once);
        assert_eq!(decode(&mut decoder, &block).unwrap().len(), 3 + length);
    }
}
