//! The computations and records of the contract, the way one writes them in Rust.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

/// One record of the contract.
#[derive(Serialize, Deserialize)]
pub struct Record {
    pub id: u32,
    pub name: String,
    pub description: String,
    pub r#type: String,
    pub count: u32,
    pub created_at: f64,
}

impl Record {
    fn new(id: u32, suffix: &str) -> Self {
        Self {
            id,
            name: format!("My name{suffix}"),
            description: format!("Some words on here so it looks full{suffix}"),
            r#type: "U".into(),
            count: 33,
            created_at: 1_569_882_498.911_789_7 + f64::from(id) * 0.000_003_1,
        }
    }
}

/// What a contestant keeps in memory before it listens.
pub struct Data {
    records: Vec<Record>,
    packed: Vec<Vec<u8>>,
    /// The same with a name and a description of its own in every record.
    packed_varied: Vec<Vec<u8>>,
    /// The records as one JSON array.
    pub json_array: Vec<u8>,
}

impl Data {
    /// Builds the records, packs each on its own and encodes all as one array.
    pub fn new() -> Self {
        let records: Vec<Record> = (0..1000)
            .map(|id| Record::new(id, ""))
            .collect();
        let varied = (0..1000).map(|id| {
            Record::new(id, &format!(" {id}"))
        });
        let pack = |record: &Record| rmp_serde::to_vec_named(record).expect("plain fields encode");
        let packed = records.iter().map(pack).collect();
        let packed_varied = varied.map(|record| pack(&record)).collect();
        let json_array = serde_json::to_vec(&records).expect("plain fields encode");
        Self {
            records,
            packed,
            packed_varied,
            json_array,
        }
    }

    /// Decodes every packed record and returns how many there were, as text.
    pub fn parse_msgpack(&self, is_varied: bool) -> String {
        let all_packed = if is_varied {
            &self.packed_varied
        } else {
            &self.packed
        };
        let decoded: Result<Vec<Record>, _> = all_packed
            .iter()
            .map(|packed| rmp_serde::from_slice(packed))
            .collect();
        decoded.expect("they were encoded above").len().to_string()
    }

    /// Encodes the records as one array and returns its number of characters (it is ASCII).
    pub fn encode_json(&self) -> String {
        serde_json::to_string(&self.records)
            .expect("plain fields encode")
            .len()
            .to_string()
    }
}

impl Default for Data {
    fn default() -> Self {
        Self::new()
    }
}

/// The total of a million steps that start at `seed`.
pub fn million_loop(seed: i64) -> i64 {
    let mut total = seed;
    for i in 0..1_000_000 {
        total += i * 3;
        if total & 64 != 0 {
            total -= i;
        }
    }
    total
}

/// The Fibonacci numbers up to `limit`, a new vector on every call; they begin with `first`, 1.
pub fn fibonacci(first: u32, limit: u32) -> Vec<u32> {
    let mut numbers = Vec::new();
    let (mut a, mut b) = (first, 1);
    while a <= limit {
        numbers.push(a);
        (a, b) = (b, a + b);
    }
    numbers
}

/// `OK` if the sequence starts as it should; with a first number the sum of the one that starts so.
///
/// The lab asks for the sum with random numbers, as a proof that the list is built.
pub fn fibonacci_answer(first: Option<u32>) -> Cow<'static, str> {
    match first {
        Some(first) => fibonacci(first, 100_000_000).iter().sum::<u32>().to_string().into(),
        None if fibonacci(1, 100_000_000)[0] == 1 => "OK".into(),
        None => "?".into(),
    }
}

/// Counts, for each name, how many bytes were close to it.
#[derive(Default)]
pub struct Classifier {
    navytux: u32,
    nexedi: u32,
    lab: u32,
    erp5: u32,
    total: u32,
}

impl Classifier {
    /// Counts one byte.
    pub fn next_byte(&mut self, byte: u8) {
        self.navytux += u32::from(is_close(byte, NAVYTUX));
        self.nexedi += u32::from(is_close(byte, NEXEDI));
        self.lab += u32::from(is_close(byte, LAB));
        self.erp5 += u32::from(is_close(byte, ERP5));
        self.total += 1;
    }
}

/// The five lines for a request path; what follows `/classify` counts.
pub fn classify(path: &str) -> String {
    let mut classifier = Classifier::default();
    for byte in path.bytes().skip("/classify".len()) {
        classifier.next_byte(byte);
    }
    let Classifier {
        navytux,
        nexedi,
        lab,
        erp5,
        total,
    } = classifier;
    let mut lines = String::new();
    write!(
        lines,
        "{NAVYTUX}:\t{navytux}\n{NEXEDI}:\t{nexedi}\n{LAB}:\t{lab}\n{ERP5}:\t{erp5}\n\
         total:\t{total}\n"
    )
    .expect("writing to a String does not fail");
    lines
}

fn is_close(byte: u8, name: &str) -> bool {
    name.bytes().any(|other| byte.abs_diff(other) <= 1)
}

const NAVYTUX: &str = "navytux.spb.ru";
const NEXEDI: &str = "www.nexedi.com";
const LAB: &str = "lab.nexedi.com";
const ERP5: &str = "www.erp5.com";
