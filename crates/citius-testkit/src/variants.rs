//! Requests that resemble each other: fast paths are compared with slow ones over runs of these.
//!
//! A run is a sequence in which most requests are the same as one before, and the others are seeded mutations of one:
//! of names, values, order, case, duplicates, method, target and version.

use crate::rng::Rng;

/// One request without a protocol's framing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variant {
    /// The method.
    pub method: Vec<u8>,
    /// The target; HTTP/2 sends it as `:path`.
    pub target: Vec<u8>,
    /// The version; HTTP/2 has no place for it.
    pub version: &'static str,
    /// What stands between a name and its value in HTTP/1.
    pub separator: &'static str,
    /// Names and values in their order.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

const METHODS: [&str; 9] = [
    "GET", "GET", "GET", "HEAD", "POST", "OPTIONS", "GETS", "get", "GE",
];
const TARGETS: [&str; 8] = ["/", "/", "/a?b=c", "/a", "/a?", "*", "http://b/a", "/%41"];
const VERSIONS: [&str; 4] = ["1.1", "1.1", "1.0", "2.0"];
const SEPARATORS: [&str; 4] = [": ", ": ", ":", ": \t"];
const NAMES: [&str; 12] = [
    "Host",
    "host",
    "HOST",
    "Hosts",
    "Accept",
    "accept",
    "Connection",
    "Content-Length",
    "Transfer-Encoding",
    "Expect",
    "X-Forwarded-For",
    "Cookie",
];
const VALUES: [&str; 16] = [
    "a",
    "b",
    "a:80",
    "a:",
    "a:99999",
    "[::1]:80",
    "a%41",
    "keep-alive",
    "Keep-Alive",
    "close",
    "close, keep-alive",
    "chunked",
    "0",
    "100-continue",
    "*/*",
    "",
];
const BYTES: [u8; 7] = [b'x', b' ', b'\t', 0, 0xff, b':', b','];

impl Variant {
    /// What clients send most.
    pub fn plain() -> Self {
        let field = |name: &str, value: &str| (name.into(), value.into());
        Self {
            method: b"GET".to_vec(),
            target: b"/".to_vec(),
            version: "1.1",
            separator: ": ",
            fields: vec![
                field("Host", "a"),
                field("Accept", "*/*"),
                field("X-Long", &"v".repeat(40)),
            ],
        }
    }

    /// Changes one thing.
    pub fn mutate(&mut self, rng: &mut Rng) {
        let at = rng.below(self.fields.len());
        let other = rng.below(self.fields.len());
        let (name, value) = (pick(rng, &NAMES), pick(rng, &VALUES));
        match rng.below(12) {
            0 => self.method = pick(rng, &METHODS).into(),
            1 => self.target = pick(rng, &TARGETS).into(),
            2 => self.version = pick(rng, &VERSIONS),
            3 => self.separator = pick(rng, &SEPARATORS),
            4 if self.fields.len() < 12 => self.fields.insert(at, (name.into(), value.into())),
            5 if !self.fields.is_empty() => drop(self.fields.remove(at)),
            6 if !self.fields.is_empty() => self.fields.swap(at, other),
            7 => self.change(at, |field| field.0 = name.into()),
            8 => self.change(at, |field| field.1 = value.into()),
            9 => self.change(at, |(name, _)| flip_case(name, other)),
            10 if self.fields.len() < 12 => self.fields.extend(self.fields.get(at).cloned()),
            _ => {
                let byte = BYTES.get(rng.below(BYTES.len())).copied().unwrap_or(0);
                let (in_name, place) = (rng.once_in(2), rng.below(3));
                self.change(at, |(name, value)| {
                    let bytes = if in_name { name } else { value };
                    bytes.insert(place.min(bytes.len()), byte);
                });
            }
        }
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut (Vec<u8>, Vec<u8>))) {
        if let Some(field) = self.fields.get_mut(at) {
            change(field);
        }
    }

    /// Its head in HTTP/1.1's form.
    pub fn to_http1(&self) -> Vec<u8> {
        let version = self.version.as_bytes();
        let mut bytes = [
            &self.method,
            &b" "[..],
            &self.target,
            b" HTTP/",
            version,
            b"\r\n",
        ]
        .concat();
        for (name, value) in &self.fields {
            for part in [name, self.separator.as_bytes(), value, b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

fn flip_case(name: &mut [u8], at: usize) {
    let at = at.checked_rem(name.len()).unwrap_or(0);
    if let Some(byte) = name.get_mut(at) {
        *byte = if byte.is_ascii_lowercase() {
            byte.to_ascii_uppercase()
        } else {
            byte.to_ascii_lowercase()
        };
    }
}

/// `length` requests, of which about one in four differs from all before.
pub fn run(rng: &mut Rng, length: usize) -> Vec<Variant> {
    let mut run = vec![Variant::plain()];
    while run.len() < length {
        let from = if rng.once_in(4) {
            rng.below(run.len())
        } else {
            run.len() - 1
        };
        let mut next = run.get(from).cloned().unwrap_or_else(Variant::plain);
        if rng.once_in(4) {
            next.mutate(rng);
        }
        run.push(next);
    }
    run
}

fn pick<'w>(rng: &mut Rng, words: &[&'w str]) -> &'w str {
    words
        .get(rng.below(words.len()))
        .copied()
        .unwrap_or_default()
}
