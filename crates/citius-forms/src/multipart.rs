//! `multipart/form-data` as it comes: pieces of a body in, parts and their content out (RFC 2046 §5.1).
//!
//! ```text
//!             delimiter            line end              empty line
//!  Preamble ───────────▶ AfterDelimiter ──────▶ Head ──────────────▶ Content
//!                          │ "--"   ▲                                  │
//!                          ▼        └──────────── delimiter ───────────┘
//!                       Epilogue
//! ```
//!
//! A delimiter is CR LF `--` boundary. CR stands in it only at its start, so that bytes which turn out to be no
//! delimiter cannot hide the start of another one: a match that fails is never tried again from its middle.

use alloc::vec::Vec;
use core::mem;

use memchr::memmem::{self, Finder};

use crate::{Fault, Limits, Part};

/// What a piece of the body has brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A part begins.
    Part(Part),
    /// Bytes of the part that has begun; never empty.
    Content(&'a [u8]),
    /// The part is complete.
    PartEnd,
    /// The form is complete; what follows has no meaning.
    End,
}

/// A parser of one form.
#[derive(Clone, Debug)]
pub struct Multipart {
    finder: Finder<'static>,
    limits: Limits,
    state: State,
    /// Bytes of the delimiter that the input before has ended with; all of them: the delimiter is complete.
    matched: usize,
    /// A header section as far as it has come, after the line end of the delimiter.
    head: Vec<u8>,
    n_fields: u32,
    n_files: u32,
    /// Bytes of all texts.
    text_bytes: u64,
    /// Bytes of the current file; `None`: the current part is a text.
    file_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Preamble,
    AfterDelimiter(Tail),
    Head,
    Content,
    Epilogue,
    Broken(Fault),
}

/// What has followed a delimiter so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    Nothing,
    Dash,
    Padding,
    Cr,
}

/// RFC 2046 §5.1.1.
const BOUNDARY_CHARS_MAX: usize = 70;

/// The line end of a delimiter stands before a header section, so that an empty one ends as others do.
const LINE_END: &[u8] = b"\r\n";

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Bytes of the input that are looked at for the end of a header section at once.
const HEAD_STEP_BYTES: usize = 512;

impl Multipart {
    /// A parser of a form with this boundary.
    ///
    /// # Errors
    /// The boundary is none.
    pub fn new(boundary: &[u8], limits: Limits) -> Result<Self, Fault> {
        let is_plain = boundary.iter().all(|byte| (b' '..0x7f).contains(byte));
        if boundary.is_empty() || boundary.len() > BOUNDARY_CHARS_MAX || !is_plain {
            return Err(Fault::Boundary);
        }
        let delimiter = [b"\r\n--", boundary].concat();
        Ok(Self {
            finder: Finder::new(&delimiter).into_owned(),
            limits,
            state: State::Preamble,
            // The first delimiter has no line end of its own if there is no preamble.
            matched: LINE_END.len(),
            head: Vec::new(),
            n_fields: 0,
            n_files: 0,
            text_bytes: 0,
            file_bytes: None,
        })
    }

    /// Takes bytes from the front of `input`; `None`: all of it was taken, and there must be more.
    ///
    /// # Errors
    /// The form breaks a rule. Every later call returns the same fault.
    pub fn receive<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'s>>, Fault> {
        loop {
            match self.state {
                State::Preamble => {
                    if !self.skip_preamble(input) {
                        return Ok(None);
                    }
                }
                State::AfterDelimiter(tail) => {
                    let Some((&byte, rest)) = input.split_first() else {
                        return Ok(None);
                    };
                    *input = rest;
                    self.after_delimiter(tail, byte)?;
                    if self.state == State::Epilogue {
                        *input = &[];
                        return Ok(Some(Event::End));
                    }
                }
                State::Head => return Ok(self.receive_head(input)?.map(Event::Part)),
                State::Content => return self.receive_content(input),
                State::Epilogue => {
                    *input = &[];
                    return Ok(None);
                }
                State::Broken(fault) => return Err(fault),
            }
        }
    }

    /// The body has ended.
    ///
    /// # Errors
    /// The form has not, or is broken.
    pub fn finish(&self) -> Result<(), Fault> {
        match self.state {
            State::Epilogue => Ok(()),
            State::Broken(fault) => Err(fault),
            State::Preamble => Err(Fault::NoDelimiter),
            State::Head => Err(Fault::HeadTooLong),
            _ => Err(Fault::Unfinished),
        }
    }

    fn fail<T>(&mut self, fault: Fault) -> Result<T, Fault> {
        self.state = State::Broken(fault);
        self.head = Vec::new();
        Err(fault)
    }

    /// Whether a delimiter was found.
    fn skip_preamble(&mut self, input: &mut &[u8]) -> bool {
        loop {
            match self.scan(input) {
                Scanned::Nothing => return false,
                Scanned::Delimiter => {
                    self.state = State::AfterDelimiter(Tail::Nothing);
                    return true;
                }
                Scanned::NoDelimiter(_) | Scanned::Bytes(_) => {}
            }
        }
    }

    fn after_delimiter(&mut self, tail: Tail, byte: u8) -> Result<(), Fault> {
        let next = match (tail, byte) {
            (Tail::Nothing, b'-') => Tail::Dash,
            (Tail::Dash, b'-') => {
                self.state = State::Epilogue;
                return Ok(());
            }
            (Tail::Nothing | Tail::Padding, b' ' | b'\t') => Tail::Padding,
            (Tail::Nothing | Tail::Padding, b'\r') => Tail::Cr,
            (Tail::Cr, b'\n') => {
                self.head.clear();
                self.head.extend_from_slice(LINE_END);
                self.state = State::Head;
                return Ok(());
            }
            _ => return self.fail(Fault::DelimiterSyntax),
        };
        self.state = State::AfterDelimiter(next);
        Ok(())
    }

    /// Collects a header section; the part, if it is complete.
    fn receive_head(&mut self, input: &mut &[u8]) -> Result<Option<Part>, Fault> {
        let bytes_max = (self.limits.part_head_bytes_max as usize).saturating_add(LINE_END.len());
        while !input.is_empty() {
            let before = self.head.len();
            let (step, rest) = input.split_at(input.len().min(HEAD_STEP_BYTES));
            self.head.extend_from_slice(step);
            // An end may have begun in the piece before.
            let from = before.saturating_sub(HEAD_END.len().saturating_sub(1));
            let found = self
                .head
                .get(from..)
                .and_then(|new| memmem::find(new, HEAD_END));
            let Some(end) = found.map(|at| at.saturating_add(from)) else {
                *input = rest;
                if self.head.len() >= bytes_max.saturating_add(HEAD_END.len()) {
                    return self.fail(Fault::HeadTooLong);
                }
                continue;
            };
            let taken = end.saturating_add(HEAD_END.len()).saturating_sub(before);
            *input = input.get(taken..).unwrap_or_default();
            if end > bytes_max {
                return self.fail(Fault::HeadTooLong);
            }
            return self.begin_part(end).map(Some);
        }
        Ok(None)
    }

    /// Reads the header section that ends at `end`.
    fn begin_part(&mut self, end: usize) -> Result<Part, Fault> {
        let head = mem::take(&mut self.head);
        let lines = head.get(LINE_END.len()..end).unwrap_or_default();
        let part = match Part::read(lines, &self.limits) {
            Ok(part) => part,
            Err(fault) => return self.fail(fault),
        };
        let (count, most, fault) = if part.filename.is_some() {
            (
                &mut self.n_files,
                self.limits.files_max,
                Fault::TooManyFiles,
            )
        } else {
            (
                &mut self.n_fields,
                self.limits.fields_max,
                Fault::TooManyFields,
            )
        };
        *count = count.saturating_add(1);
        if *count > most {
            return self.fail(fault);
        }
        self.file_bytes = part.filename.is_some().then_some(0);
        self.head = head; // for its memory
        self.state = State::Content;
        Ok(part)
    }

    fn receive_content<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'s>>, Fault> {
        let (count, bytes) = match self.scan(input) {
            Scanned::Nothing => return Ok(None),
            Scanned::Delimiter => {
                self.state = State::AfterDelimiter(Tail::Nothing);
                return Ok(Some(Event::PartEnd));
            }
            Scanned::NoDelimiter(count) => (count, None),
            Scanned::Bytes(bytes) => (bytes.len(), Some(bytes)),
        };
        self.count(count as u64)?;
        let of_delimiter = || self.finder.needle().get(..count).unwrap_or_default();
        Ok(Some(Event::Content(bytes.unwrap_or_else(of_delimiter))))
    }

    /// Counts bytes of the current part.
    fn count(&mut self, bytes: u64) -> Result<(), Fault> {
        let (total, most, fault) = match &mut self.file_bytes {
            Some(total) => (total, self.limits.file_bytes_max, Fault::FileTooLong),
            None => (
                &mut self.text_bytes,
                self.limits.text_bytes_max,
                Fault::TextTooLong,
            ),
        };
        *total = total.saturating_add(bytes);
        if *total > most {
            return self.fail(fault);
        }
        Ok(())
    }

    /// Looks for the delimiter at the front of `input` and takes what it has seen.
    fn scan<'i>(&mut self, input: &mut &'i [u8]) -> Scanned<'i> {
        if self.matched == self.finder.needle().len() {
            self.matched = 0;
            return Scanned::Delimiter;
        }
        if self.matched > 0 {
            return self.scan_on(input);
        }
        if input.is_empty() {
            return Scanned::Nothing;
        }
        let (bytes, rest) = if let Some(at) = self.finder.find(input) {
            self.matched = self.finder.needle().len();
            let (bytes, rest) = input.split_at(at);
            (bytes, rest.get(self.matched..).unwrap_or_default())
        } else {
            let (bytes, begun) = input.split_at(self.begun_at(input));
            self.matched = begun.len();
            (bytes, &[][..])
        };
        *input = rest;
        if bytes.is_empty() {
            return self.scan(input);
        }
        Scanned::Bytes(bytes)
    }

    /// Continues a delimiter that the input before has ended with a part of.
    fn scan_on<'i>(&mut self, input: &mut &'i [u8]) -> Scanned<'i> {
        let missing = self.finder.needle().get(self.matched..).unwrap_or_default();
        let equal = missing
            .iter()
            .zip(input.iter())
            .take_while(|(wanted, byte)| wanted == byte)
            .count();
        let is_whole = equal == missing.len();
        let rest = input.get(equal..).unwrap_or_default();
        self.matched = self.matched.saturating_add(equal);
        *input = rest;
        if is_whole {
            self.matched = 0;
            return Scanned::Delimiter;
        }
        if rest.is_empty() {
            return Scanned::Nothing;
        }
        Scanned::NoDelimiter(mem::take(&mut self.matched))
    }

    /// Where at the end of `input`, which has no delimiter, one may have begun; its length if nowhere.
    fn begun_at(&self, input: &[u8]) -> usize {
        let tail_at = input
            .len()
            .saturating_sub(self.finder.needle().len().saturating_sub(1));
        let tail = input.get(tail_at..).unwrap_or_default();
        let begun = memchr::memrchr(b'\r', tail).filter(|&at| {
            tail.get(at..)
                .is_some_and(|end| self.finder.needle().starts_with(end))
        });
        begun.map_or(input.len(), |at| at.saturating_add(tail_at))
    }
}

/// What was found at the front of the input.
enum Scanned<'i> {
    /// Nothing that is certain yet; all was taken.
    Nothing,
    Delimiter,
    /// So many bytes of a delimiter, which were taken before, are not one.
    NoDelimiter(usize),
    /// Bytes before a delimiter, or before what may be one.
    Bytes(&'i [u8]),
}
