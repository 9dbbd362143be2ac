use alloc::vec;
use alloc::vec::Vec;

use super::*;

fn internet(source: &str, destination: &str) -> Ends {
    Ends::Internet {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
    }
}

/// A header of version 2.
fn binary(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = SIGNATURE.to_vec();
    bytes.extend([command, family]);
    bytes.extend(u16::try_from(rest.len()).unwrap().to_be_bytes());
    bytes.extend(rest);
    bytes
}

const IPV4: [u8; 12] = [192, 0, 2, 1, 198, 51, 100, 7, 0xdb, 0x58, 0x01, 0xbb];

fn valid() -> Vec<(Vec<u8>, Ends)> {
    let ipv6 = {
        let mut rest = Vec::new();
        rest.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        rest.extend("2001:db8::2".parse::<Ipv6Addr>().unwrap().octets());
        rest.extend([0xdb, 0x58, 0x01, 0xbb]);
        rest
    };
    let v4 = internet("192.0.2.1:56152", "198.51.100.7:443");
    let v6 = internet("[2001:db8::1]:56152", "[2001:db8::2]:443");
    let mut records = IPV4.to_vec();
    records.extend([0x01, 0, 2, b'h', b'2']);
    vec![
        (
            b"PROXY TCP4 192.0.2.1 198.51.100.7 56152 443\r\n".to_vec(),
            v4,
        ),
        (
            b"PROXY TCP6 2001:db8::1 2001:db8::2 56152 443\r\n".to_vec(),
            v6,
        ),
        (
            b"PROXY TCP4 0.0.0.0 255.255.255.255 0 65535\r\n".to_vec(),
            internet("0.0.0.0:0", "255.255.255.255:65535"),
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), Ends::Unnamed),
        (
            b"PROXY UNKNOWN ffff:f...f:ffff 65535 what ever\r\n".to_vec(),
            Ends::Unnamed,
        ),
        (binary(0x21, 0x11, &IPV4), v4),
        (binary(0x21, 0x11, &records), v4),
        (binary(0x21, 0x21, &ipv6), v6),
        (binary(0x21, 0x31, &[0; 216]), Ends::Local),
        (binary(0x21, 0x00, b""), Ends::Unnamed),
        (binary(0x20, 0x00, b""), Ends::Connection),
        (binary(0x20, 0x11, &IPV4), Ends::Connection),
    ]
}

#[test]
fn a_header_is_read_and_its_length_is_told() {
    for (mut bytes, ends) in valid() {
        let length = bytes.len();
        bytes.extend(b"GET / HTTP/1.1\r\n");
        assert_eq!(
            read_proxy_header(&bytes),
            Progress::Complete { length, ends }
        );
    }
}

#[test]
fn a_header_that_is_cut_anywhere_is_partial() {
    for (bytes, _) in valid() {
        for cut in 0..bytes.len() {
            assert_eq!(
                read_proxy_header(&bytes[..cut]),
                Progress::Partial,
                "{cut} of {bytes:?}"
            );
        }
    }
}

#[test]
fn what_is_no_header_is_invalid() {
    let long = [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; 92], b"\r\n".to_vec()].concat();
    let lines: [&[u8]; 17] = [
        b"GET / HTTP/1.1\r\n",
        b"PROXY\r\n\r\n",
        b"PROXY  TCP4 192.0.2.1 198.51.100.7 1 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 1 2\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 1\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 1 2 \r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 1 2 3\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 01 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 +1 2\r\n",
        b"PROXY TCP4 192.0.2.1 198.51.100.7 65536 2\r\n",
        b"PROXY TCP4 192.0.2.01 198.51.100.7 1 2\r\n",
        b"PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
        b"PROXY TCP6 192.0.2.1 198.51.100.7 1 2\r\n",
        b"PROXY TCP5 192.0.2.1 198.51.100.7 1 2\r\n",
        b"proxy TCP4 192.0.2.1 198.51.100.7 1 2\r\n",
        b"PROXY TCP4 \xff 198.51.100.7 1 2\r\n",
        &long,
    ];
    let binaries = [
        binary(0x11, 0x11, &IPV4),
        binary(0x22, 0x11, &IPV4),
        binary(0x21, 0x12, &IPV4),
        binary(0x21, 0x41, &IPV4),
        binary(0x21, 0x11, &IPV4[..11]),
        binary(0x21, 0x21, &IPV4),
        binary(0x21, 0x31, &[0; 215]),
        binary(0x21, 0x11, &[0; PROXY_HEADER_BYTES_MAX - FIXED_BYTES + 1]),
    ];
    for bytes in lines.into_iter().chain(binaries.iter().map(Vec::as_slice)) {
        assert_eq!(read_proxy_header(bytes), Progress::Invalid, "{bytes:?}");
    }
}
