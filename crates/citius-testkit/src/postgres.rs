//! Campaigns against the client of PostgreSQL: what a server could send, more or less, in any cut.
//!
//! - Nothing panics: neither the connection nor what reads the values of its rows.
//! - parse(whole) == parse(any cut): the same events, the same bytes sent, the same fault.
//! - A row belongs to a request that is under way, and each request ends once.
//! - What is written as JSON is JSON.

use std::sync::Arc;

use citius_pg::{
    Connection, Definition, Description, Event, JsonRows, Kind, Login, NESTING_MAX, Parameters,
    Piece, Row, Types, Value,
};

use crate::rng::Rng;

/// Hears `input` whole, byte by byte and in random pieces, and compares.
///
/// # Panics
/// If one of the invariants does not hold; the message says which.
pub fn check(input: &[u8], seed: u64) {
    let whole = hear([input], seed);
    assert_eq!(hear(input.chunks(1), seed), whole, "differs byte by byte");
    let pieces = Rng::new(seed).pieces(input);
    assert_eq!(hear(pieces, seed), whole, "differs in pieces");
}

/// A client that makes requests as events come, and writes down what it has heard and sent.
struct Client {
    connection: Connection,
    rng: Rng,
    types: Arc<Types>,
    description: Description,
    heard: Vec<String>,
}

fn hear<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, seed: u64) -> Vec<String> {
    let login = Login {
        user: "u".into(),
        password: Some("p".into()),
        ..Login::default()
    };
    let mut client = Client {
        connection: Connection::new(login).expect("no zero bytes"),
        rng: Rng::new(seed ^ 3),
        types: Arc::new(types()),
        description: Description::default(),
        heard: Vec::new(),
    };
    let mut held = Vec::new();
    for piece in pieces {
        held.extend_from_slice(piece);
        let mut input = held.as_slice();
        let is_over = client.take(&mut input);
        let left = input.len();
        if is_over {
            return client.heard;
        }
        held.drain(..held.len() - left);
    }
    client.heard
}

impl Client {
    /// Takes all whole messages; `true` if the connection is over.
    fn take(&mut self, input: &mut &[u8]) -> bool {
        loop {
            let before = self.connection.requests();
            let event = match self.connection.receive(input) {
                Ok(Some(event)) => event,
                Ok(None) => return false,
                Err(fault) => {
                    self.heard.push(format!("{fault:?}"));
                    return true;
                }
            };
            let is_row = matches!(
                event,
                Event::Row(_) | Event::Complete(_) | Event::Columns(_)
            );
            assert!(!is_row || before > 0, "{event:?} without a request");
            let is_done = matches!(event, Event::Done(_));
            assert_eq!(before - self.connection.requests(), usize::from(is_done));
            // SCRAM's first message has random bytes in it.
            self.heard.push(format!("{event:?}"));
            self.act(event);
            if self.heard.iter().any(|heard| heard == "Open") {
                let sent = self.connection.output().split();
                self.heard.push(format!("{sent:?}"));
            }
        }
    }

    fn act(&mut self, event: Event<'_>) {
        match event {
            Event::Row(row) => self.read(row),
            Event::Prepared(mut description) => {
                description.resolve(&self.types);
                self.description = description;
            }
            Event::Columns(mut columns) => columns.resolve(&self.types),
            Event::CopyIn => {
                self.connection.copy_data(b"a\n");
                self.connection.copy_done();
            }
            Event::Open => {
                let prepared = self.connection.prepare("s", "SELECT 1");
                prepared.expect("it has no zero bytes");
            }
            Event::Done(_) => {
                self.request();
                if self.rng.once_in(4) {
                    self.request();
                }
            }
            _ => {}
        }
    }

    fn request(&mut self) {
        let connection = &mut self.connection;
        let made = match self.rng.below(12) {
            0 => connection.prepare("s", "SELECT 1"),
            1 => connection.script("SELECT 1"),
            2 => connection.copy("COPY t TO STDOUT"),
            _ => {
                let mut parameters = Parameters::default();
                parameters.push_binary(&[1]);
                connection.execute("s", &self.description, &parameters)
            }
        };
        made.expect("it has no zero bytes");
    }

    /// Reads the values of a row in every way that there is.
    fn read(&mut self, row: Row<'_>) {
        let rows = JsonRows::new(&self.description, &self.types);
        let mut json = String::new();
        let pushed = rows.push(row, &mut json);
        self.heard.push(format!("{pushed:?} {json}"));
        let columns = &self.description.columns;
        // JSON of the server's own is passed on as it is.
        let is_ours = |kind: Kind| kind.is_scalar() && !matches!(kind, Kind::Json | Kind::Jsonb);
        if pushed.is_ok() && columns.iter().all(|column| is_ours(column.kind)) {
            let mut rest = json.as_bytes();
            assert!(skip_json(&mut rest) && rest.is_empty(), "not JSON: {json}");
        }
        for value in row.values() {
            let Ok(Some(bytes)) = value else { continue };
            for kind in KINDS {
                self.walk(kind, bytes, NESTING_MAX);
            }
        }
    }

    /// Reads a value and the values in it.
    fn walk(&self, kind: Kind, bytes: &[u8], levels: usize) {
        let (Ok(value), Some(levels)) = (Value::of(kind, bytes), levels.checked_sub(1)) else {
            return;
        };
        let inner = |type_oid: u32, bytes: Option<&[u8]>| {
            if let Some(bytes) = bytes {
                self.walk(self.types.kind_of(type_oid), bytes, levels);
            }
        };
        match value {
            Value::Array(array) => {
                let elements = array.elements().filter_map(Result::ok);
                elements.for_each(|element| inner(array.element, element));
            }
            Value::Composite(composite) => {
                let fields = composite.fields().filter_map(Result::ok);
                fields.for_each(|(type_oid, bytes)| inner(type_oid, bytes));
            }
            Value::Range(range) => {
                inner(range.bound, range.lower);
                inner(range.bound, range.upper);
            }
            Value::Multirange(ranges) => {
                ranges.ranges().filter_map(Result::ok).for_each(|range| {
                    inner(range.bound, range.lower);
                });
            }
            Value::TextArray(array) => {
                let mut depth = 0_i32;
                let walked = array.walk(|piece| {
                    depth += i32::from(piece == Piece::Open) - i32::from(piece == Piece::Close);
                    Ok::<_, citius_pg::Fault>(())
                });
                assert!(walked.is_err() || depth == 0, "braces of {array:?}");
            }
            _ => {}
        }
    }
}

const KINDS: [Kind; 12] = [
    Kind::Array,
    Kind::TextArray(b','),
    Kind::Range(23),
    Kind::Range(1184),
    Kind::Multirange(1700),
    Kind::Composite(20_001),
    Kind::Record,
    Kind::Numeric,
    Kind::Interval,
    Kind::TimeTz,
    Kind::Jsonb,
    Kind::Uuid,
];

fn types() -> Types {
    let mut types = Types::default();
    let fields = [("a".to_owned(), 23), ("b".to_owned(), 20_002)];
    types.insert(20_001, Definition::Composite(Box::new(fields)));
    types.insert(20_002, Definition::Domain(25));
    // A domain of itself, and a composite type in itself: no server has them.
    types.insert(20_003, Definition::Domain(20_003));
    let itself = [("c".to_owned(), 20_004)];
    types.insert(20_004, Definition::Composite(Box::new(itself)));
    let array = Definition::Array {
        element: 20_001,
        delimiter: b',',
    };
    types.insert(20_005, array);
    types.insert(20_006, Definition::Range(20_002));
    types.insert(20_007, Definition::Enum);
    types
}

/// Skips a JSON value; `false` if there is none. What the campaign writes is shallow.
fn skip_json(rest: &mut &[u8]) -> bool {
    fn literal(rest: &mut &[u8], text: &[u8]) -> bool {
        rest.strip_prefix(text).map(|after| *rest = after).is_some()
    }
    fn several(rest: &mut &[u8], end: u8, has_keys: bool) -> bool {
        *rest = &rest[1..];
        if literal(rest, &[end]) {
            return true;
        }
        loop {
            if has_keys && !(rest.starts_with(b"\"") && skip_json(rest) && literal(rest, b":")) {
                return false;
            }
            if !skip_json(rest) {
                return false;
            }
            if literal(rest, &[end]) {
                return true;
            }
            if !literal(rest, b",") {
                return false;
            }
        }
    }
    match rest.first() {
        Some(b'{') => several(rest, b'}', true),
        Some(b'[') => several(rest, b']', false),
        Some(b'"') => {
            let mut at = 1;
            while let Some(&byte) = rest.get(at) {
                match byte {
                    b'"' => {
                        let is_text = std::str::from_utf8(&rest[..at]).is_ok();
                        *rest = &rest[at + 1..];
                        return is_text;
                    }
                    b'\\' => at += 2,
                    0..0x20 => return false,
                    _ => at += 1,
                }
            }
            false
        }
        Some(b't') => literal(rest, b"true"),
        Some(b'f') => literal(rest, b"false"),
        Some(b'n') => literal(rest, b"null"),
        _ => skip_number(rest),
    }
}

/// RFC 8259, section 6.
fn skip_number(rest: &mut &[u8]) -> bool {
    let digits = |rest: &mut &[u8]| {
        let end = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        *rest = &rest[end..];
        end
    };
    *rest = rest.strip_prefix(b"-").unwrap_or(rest);
    let has_zero = rest.first() == Some(&b'0');
    let whole = digits(rest);
    if whole == 0 || (has_zero && whole > 1) {
        return false;
    }
    if let Some(after) = rest.strip_prefix(b".") {
        *rest = after;
        if digits(rest) == 0 {
            return false;
        }
    }
    if let Some(after) = rest.strip_prefix(b"e").or_else(|| rest.strip_prefix(b"E")) {
        let after = after
            .strip_prefix(b"-")
            .or_else(|| after.strip_prefix(b"+"))
            .unwrap_or(after);
        *rest = after;
        return digits(rest) > 0;
    }
    true
}

/// The messages of a server, more or less.
pub fn compose(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    if !rng.once_in(20) {
        message(&mut bytes, b'R', &[0, 0, 0, 0]);
        message(&mut bytes, b'K', &[0, 0, 0, 7, 0, 0, 0, 9]);
        message(&mut bytes, b'Z', b"I");
    }
    let mut columns = describe(rng, &mut bytes);
    message(&mut bytes, b'Z', b"I");
    for _ in 0..rng.below(6) {
        match rng.below(8) {
            0 => {
                let body: Vec<u8> = (0..rng.below(12)).map(|_| byte(rng)).collect();
                let tag = b"RSKZ123CDEINTtnAsGHWdcv?"[rng.below(24)];
                message(&mut bytes, tag, &body);
            }
            1 => {
                columns = describe(rng, &mut bytes);
                message(&mut bytes, b'Z', b"T");
            }
            2 => {
                let text: &[&[u8]] = &[
                    b"SERROR\0C22012\0Mdivision by zero\0\0",
                    b"SFATAL\0VFATAL\0C57P01\0Mgone\0\0",
                    b"C",
                ];
                message(&mut bytes, b'E', text[rng.below(3)]);
                message(&mut bytes, b'Z', b"E");
            }
            _ => {
                message(&mut bytes, b'2', b"");
                for _ in 0..rng.below(4) {
                    row(rng, &mut bytes, &columns);
                }
                message(&mut bytes, b'C', b"SELECT 12\0");
                message(&mut bytes, b'Z', &b"ITE"[rng.below(3)..][..1]);
            }
        }
    }
    for _ in 0..rng.below(2) {
        let at = rng.below(bytes.len());
        if let Some(changed) = bytes.get_mut(at) {
            *changed = byte(rng);
        }
    }
    bytes
}

fn byte(rng: &mut Rng) -> u8 {
    const USUAL: [u8; 14] = [0, 0, 0, 1, 2, 4, 8, 16, 23, 25, 34, 92, 127, 255];
    if rng.once_in(4) {
        u8::try_from(rng.below(256)).unwrap_or(0)
    } else {
        USUAL[rng.below(USUAL.len())]
    }
}

fn message(bytes: &mut Vec<u8>, tag: u8, body: &[u8]) {
    bytes.push(tag);
    bytes.extend(u32::try_from(body.len() + 4).unwrap_or(4).to_be_bytes());
    bytes.extend(body);
}

/// `ParseComplete`, the types of parameters, and columns, whose names have dots; returns their types.
fn describe(rng: &mut Rng, bytes: &mut Vec<u8>) -> Vec<u32> {
    const TYPES: [u32; 24] = [
        16, 17, 20, 21, 23, 25, 26, 700, 701, 1082, 1114, 1184, 1186, 1266, 1700, 2249, 2950, 3802,
        3904, 1007, 1041, 4532, 20_001, 20_005,
    ];
    message(bytes, b'1', b"");
    message(bytes, b't', &[0, 1, 0, 0, 0, 23]);
    let columns: Vec<u32> = (0..rng.below(4))
        .map(|_| TYPES[rng.below(TYPES.len())])
        .collect();
    let mut body = vec![0, u8::try_from(columns.len()).unwrap_or(0)];
    for (at, type_oid) in columns.iter().enumerate() {
        let name: &[u8] =
            [b"a\0", b"b.\"c\"\0".as_slice(), b"b.d\0", b"\0"][(at + rng.below(2)) % 4];
        body.extend(name);
        body.extend([0; 6]);
        body.extend(type_oid.to_be_bytes());
        body.extend([0; 8]);
    }
    message(bytes, b'T', &body);
    columns
}

/// A row, whose values are mostly those of its columns.
fn row(rng: &mut Rng, bytes: &mut Vec<u8>, columns: &[u32]) {
    let count = columns.len() + usize::from(rng.once_in(20));
    let mut body = vec![0, u8::try_from(count).unwrap_or(0)];
    for at in 0..count {
        if rng.once_in(6) {
            body.extend([255; 4]);
            continue;
        }
        let value = match columns.get(at) {
            Some(column) if !rng.once_in(6) => typed(rng, *column),
            _ => value(rng, 3),
        };
        body.extend(u32::try_from(value.len()).unwrap_or(0).to_be_bytes());
        body.extend(value);
    }
    message(bytes, b'D', &body);
}

/// A value of a type, nearly always.
fn typed(rng: &mut Rng, type_oid: u32) -> Vec<u8> {
    let len = match type_oid {
        16 => 1,
        21 => 2,
        23 | 26 | 700 | 1082 => 4,
        20 | 701 | 1114 | 1184 => 8,
        1266 => 12,
        1186 | 2950 => 16,
        1700 => {
            let digits = rng.below(4);
            let mut made = vec![0, u8::try_from(digits).unwrap_or(0), 0, byte(rng) % 4];
            made.extend([[0, 0], [0x40, 0], [0xc0, 0]][rng.below(3)]);
            made.extend([0, byte(rng) % 9]);
            made.extend((0..digits).flat_map(|_| [byte(rng) % 40, byte(rng) & 1]));
            return made;
        }
        _ => return value(rng, 3),
    };
    (0..len).map(|_| byte(rng)).collect()
}

/// A value of some type.
fn value(rng: &mut Rng, levels: usize) -> Vec<u8> {
    match rng.below(if levels == 0 { 4 } else { 8 }) {
        0 => {
            let len = [1, 2, 4, 8, 12, 16][rng.below(6)];
            random(rng, len)
        }
        1 => b"h\xc3\xa9 \"\\\n\x01"[..rng.below(9)].to_vec(),
        2 => {
            let arrays: [&[u8]; 4] = [b"{a,NULL,\"b\\\"\"}", b"{{1},{2}}", b"[0:1]={a", b"{}"];
            arrays[rng.below(4)].to_vec()
        }
        3 => {
            let len = rng.below(10);
            random(rng, len)
        }
        4 => array(rng, levels),
        5 => {
            // A range: flags and bounds.
            let mut made = vec![byte(rng)];
            (0..rng.below(3)).for_each(|_| inner(rng, &mut made, levels));
            made
        }
        6 => {
            // A composite value: fields with their types.
            let count = rng.below(3);
            let mut made = vec![0, 0, 0, u8::try_from(count).unwrap_or(0)];
            for _ in 0..count {
                made.extend([23_u32, 25, 2249, 20_004][rng.below(4)].to_be_bytes());
                inner(rng, &mut made, levels);
            }
            made
        }
        _ => {
            // A multirange.
            let count = rng.below(3);
            let mut made = vec![0, 0, 0, u8::try_from(count).unwrap_or(0)];
            (0..count).for_each(|_| inner(rng, &mut made, levels));
            made
        }
    }
}

/// Dimensions, flags, the type of the elements, lengths and lower bounds, elements.
fn array(rng: &mut Rng, levels: usize) -> Vec<u8> {
    let element = [23_u32, 25, 1700, 20_001, 2249, 3904][rng.below(6)];
    let count = rng.below(3);
    let mut made = vec![0, 0, 0, 1, 0, 0, 0, 0];
    made.extend(element.to_be_bytes());
    made.extend([0, 0, 0, u8::try_from(count).unwrap_or(0), 0, 0, 0, 1]);
    (0..count).for_each(|_| inner(rng, &mut made, levels));
    made
}

/// A value within another one, with its length.
fn inner(rng: &mut Rng, out: &mut Vec<u8>, levels: usize) {
    let inner = value(rng, levels.saturating_sub(1));
    out.extend(u32::try_from(inner.len()).unwrap_or(0).to_be_bytes());
    out.extend(inner);
}

fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| byte(rng)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_campaign() {
        for seed in 0..4000 {
            check(&compose(&mut Rng::new(seed)), seed);
        }
    }

    #[test]
    fn most_of_what_is_composed_is_understood() {
        let heard = |seed| hear([compose(&mut Rng::new(seed)).as_slice()], seed).join("\n");
        let all: Vec<String> = (0..2000).map(heard).collect();
        let count = |word: &str| all.iter().filter(|heard| heard.contains(word)).count();
        for (word, least) in [
            ("Open", 1500),
            ("Prepared", 1000),
            ("Ok(()) {", 100),
            ("Done", 1000),
        ] {
            assert!(count(word) > least, "{word}: {}", count(word));
        }
    }

    #[test]
    fn json_is_told_from_what_is_none() {
        for text in ["{}", "[1,-0.5e3,\"a\\\"\",{\"b\":null}]", "true"] {
            let mut rest = text.as_bytes();
            assert!(skip_json(&mut rest) && rest.is_empty(), "{text}");
        }
        for text in ["", "01", "{1:2}", "[1,]", "\"\n\"", "1.", "tru"] {
            let mut rest = text.as_bytes();
            assert!(!(skip_json(&mut rest) && rest.is_empty()), "{text}");
        }
    }
}
