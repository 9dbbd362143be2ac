//! Plays a transcript and holds what came of it against what it says.

use citius_http::Fault;

use crate::driver::{Application, Driver, Echo, Seen, Silent, closing_word};
use crate::transcript::{Block, Deadline, Step, Transcript, escape};

/// How the peer's bytes are cut up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// Each `>` line in one piece, together with those that follow it directly.
    Whole,
    /// In two pieces at this index of all bytes.
    At(usize),
    /// Every byte on its own.
    Bytes,
}

/// Plays `transcript`.
///
/// # Errors
/// The first block that came out otherwise, and how.
pub fn replay(transcript: &Transcript, cutting: Split) -> Result<(), String> {
    let (mut echo, mut silent) = (Echo::default(), Silent);
    let application: &mut dyn Application = if transcript.echo {
        &mut echo
    } else {
        &mut silent
    };
    let mut driver = Driver::new(&transcript.limits, application);
    driver.sign(transcript.server.as_deref(), transcript.date.as_deref());
    let mut n_sent = 0;
    let mut fault = None;
    for block in &transcript.blocks {
        let (n_seen, n_written) = (driver.seen.len(), driver.written.len());
        driver.separate();
        perform(&mut driver, block, cutting, &mut n_sent);
        fault = block.fault.or(fault);
        let outcome = Outcome {
            seen: driver.seen.get(n_seen..).unwrap_or_default(),
            written: driver.written.get(n_written..).unwrap_or_default(),
            driver: &driver,
        };
        outcome
            .compare(block, fault, transcript.echo)
            .map_err(|reason| format!("block at line {}, {cutting:?}: {reason}", block.line))?;
    }
    Ok(())
}

/// Plays `transcript` whole, byte by byte, and cut in two at (nearly) every place.
///
/// # Errors
/// See [`replay`].
pub fn replay_all_splits(transcript: &Transcript) -> Result<(), String> {
    replay(transcript, Split::Whole)?;
    replay(transcript, Split::Bytes)?;
    let n_bytes = transcript.input().len();
    // Long inputs are runs of one byte: a prime step visits enough of their inside.
    let step = if n_bytes > 2000 { 97 } else { 1 };
    let inside = (1..n_bytes).step_by(step);
    let edges = (1..n_bytes.min(200)).chain(n_bytes.saturating_sub(200)..n_bytes);
    for at in inside.chain(edges) {
        replay(transcript, Split::At(at))?;
    }
    Ok(())
}

fn perform(driver: &mut Driver<'_>, block: &Block, cutting: Split, n_sent: &mut usize) {
    let mut steps = block.steps.iter().peekable();
    while let Some(step) = steps.next() {
        match step {
            Step::Input(bytes) => {
                let mut bytes = bytes.clone();
                while let Some(Step::Input(more)) = steps.peek() {
                    bytes.extend_from_slice(more);
                    steps.next();
                }
                let pieces = cut(&bytes, cutting, *n_sent);
                *n_sent += bytes.len();
                driver.offer(pieces);
            }
            Step::Finish => driver.finish(),
            Step::Drain => driver.drain(),
            Step::Refuse(fault) => driver.refuse(*fault),
            Step::Wait(span_ms) => driver.wait(*span_ms),
            Step::Deed(stream, deed) => driver.act(*stream, deed.clone()),
        }
    }
}

fn cut(bytes: &[u8], cutting: Split, n_before: usize) -> Vec<Vec<u8>> {
    match cutting {
        Split::Whole => vec![bytes.to_vec()],
        Split::At(at) => {
            let inside = at.saturating_sub(n_before).min(bytes.len());
            let (first, second) = bytes.split_at(inside);
            vec![first.to_vec(), second.to_vec()]
        }
        Split::Bytes => bytes.chunks(1).map(<[u8]>::to_vec).collect(),
    }
}

struct Outcome<'a, 'd> {
    seen: &'a [Seen],
    written: &'a [u8],
    driver: &'a Driver<'d>,
}

impl Outcome<'_, '_> {
    fn compare(&self, block: &Block, fault: Option<Fault>, echo: bool) -> Result<(), String> {
        let n_given = self.written.len().min(block.output.len());
        let (given, more) = self.written.split_at(n_given);
        same("output", &escape(given), &escape(&block.output))?;
        if !more.is_empty() && (!block.output_is_open || has_status_line(more)) {
            return Err(format!("more output\n got {}", escape(more)));
        }
        let connection = &self.driver.connection;
        same("fault", &connection.fault(), &fault)?;
        match (connection.closing(), block.close.as_deref()) {
            (Some(_), Some("")) => {}
            (closing, word) => same("close", &closing.map(closing_word), &word)?,
        }
        if let Some(reading) = block.reading {
            same("reading", &self.driver.is_reading(), &reading)?;
        }
        if let Some(deadline) = block.deadline {
            let left = self.driver.time_left();
            same(
                "deadline",
                &left.map_or(Deadline::Never, Deadline::In),
                &deadline,
            )?;
        }
        if !(echo && block.events.is_empty()) {
            let events: Vec<String> = self.seen.iter().map(spell).collect();
            same("events", &events, &block.events)?;
        }
        Ok(())
    }
}

fn has_status_line(bytes: &[u8]) -> bool {
    bytes
        .windows(9)
        .any(|window| window.starts_with(b"HTTP/1.") && window.ends_with(b" "))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Result<(), String> {
    if got == expected {
        return Ok(());
    }
    Err(format!("{what}\n expected {expected:?}\n got      {got:?}"))
}

/// An event as transcripts spell it.
pub(crate) fn spell(seen: &Seen) -> String {
    let text = match seen {
        Seen::Request {
            stream,
            method,
            target,
            ..
        } => {
            format!("request {stream} {} {}", escape(method), escape(target))
        }
        Seen::Data { stream, bytes } => format!("data {stream} {}", escape(bytes)),
        Seen::End { stream, trailers } => format!("end {stream} {}", escape(trailers)),
        Seen::BodyRefused { stream, fault } => format!("refused {stream} {}", fault.name()),
        Seen::Broken { stream, fault } => format!("broken {stream} {}", fault.name()),
        Seen::AppFault { stream, fault } => format!("app-fault {stream} {}", fault.name()),
    };
    text.trim_end().into()
}
