//! Transcripts: what a peer sends, what the application does, and what must come of it.
//!
//! A line's first character is its kind, the second a space, the rest its content. Empty lines mean nothing.
//!
//! | kind | content | meaning |
//! |---|---|---|
//! | `#` | text | comment |
//! | `?` | `NAME CONTENT` | a variant: the transcript is played once for each, with `\?` in other lines standing for CONTENT |
//! | `:` | `limit NAME VALUE` | a limit other than the default; before the first step |
//! | `:` | `app none` | no application: only `~` lines respond; otherwise the echo application does |
//! | `:` | `server TEXT`, `date TEXT` | the value of that field; without it the field is not sent |
//! | `:` | `memory REASON` | makes no sense over a socket |
//! | `>` | bytes | the peer sends |
//! | `!` | `finish` | the peer closes its sending side |
//! | `!` | `drain` | the server stops taking requests |
//! | `!` | `refuse FAULT` | the server refuses the connection |
//! | `@` | `+MS` | so many milliseconds pass |
//! | `~` | `STREAM want N` or `STREAM want all` | the application asks for body bytes |
//! | `~` | `STREAM inform STATUS HEAD`, `STREAM respond STATUS HEAD BODY`, `STREAM start STATUS HEAD`, `STREAM data BODY`, `STREAM end HEAD`, `STREAM abort`, `STREAM fail FAULT` | the application acts |
//! | `=` | `request STREAM METHOD TARGET`, `data STREAM BYTES`, `end STREAM HEAD`, `refused STREAM FAULT`, `broken STREAM FAULT`, `app-fault STREAM FAULT` | an event |
//! | `=` | `fault FAULT` | the rule the peer broke; more words are for the reader |
//! | `=` | `close`, `close clean`, `close linger`, `close abort` | the connection is to be closed, in this way |
//! | `=` | `reading yes`, `reading no` | whether the connection wants input |
//! | `=` | `deadline +MS`, `deadline none` | when it wants to be woken, from now |
//! | `<` | bytes | the output |
//!
//! **Bytes** know the escapes `\r \n \t \\`, `\xHH`, and `\*N{…}`: what stands in the braces, N times. CONTENT is put
//! in place of `\?` as it is written, before escapes are undone.
//! **HEAD** is `name: value\r\n` lines up to an empty line `\r\n`, or nothing at all; the name `:type` stands
//! for the media type that an application gives apart from its fields. **BODY** is the bytes that follow.
//!
//! Lines of the kinds `> ! @ ~` are steps, of the kinds `= <` expectations. A run of steps and the
//! expectations behind it are a block, and are held against each other when the block is over:
//! - The output is exactly that of the `<` lines together (nothing if there are none). Three dots at the
//!   end of the last one stand for the rest of that response: any further bytes without another status line.
//! - The events are exactly those of the `=` lines; if there are none and the echo application answers,
//!   events are not looked at. Pieces of a body that follow each other count as one.
//! - Without `= close` the connection is open; once closed it stays so. Without `= fault` anywhere, the peer
//!   broke no rule.
//!
//! **The echo application** asks for all of each body and, when a request is complete, answers
//! 200, `text/plain`, with `METHOD PATH N\n` and the N bytes of the body. PATH has `?` and the query behind
//! it if that is not empty.
//!
//! A transcript without `: limit`, `: app`, `: memory`, `@`, `~`, `! drain` and `! refuse` can be played over
//! a socket to a server with the echo application; `server` and `date` lines are dropped from the output before it
//! is compared, and of `=` lines only `close` can be seen. `tests/conformance/transcript.py` is a
//! reader in Python.

use std::path::Path;
use std::{fs, io};

use citius_http::{Fault, Limits};

/// A parsed file.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// Limits in force.
    pub limits: Limits,
    /// Whether the echo application answers.
    pub echo: bool,
    /// Value of the `server` field, if it is sent.
    pub server: Option<String>,
    /// Value of the `date` field, if it is sent.
    pub date: Option<String>,
    /// Why it can only be played in memory.
    pub memory: Option<String>,
    /// What happens, and what must come of it.
    pub blocks: Vec<Block>,
}

/// Steps, and what must have come of them when they are done.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Number of its first line.
    pub line: usize,
    /// What happens.
    pub steps: Vec<Step>,
    /// Events in order.
    pub events: Vec<String>,
    /// The peer's fault.
    pub fault: Option<Fault>,
    /// `close …`, as written.
    pub close: Option<String>,
    /// Whether input is wanted.
    pub reading: Option<bool>,
    /// When it wants to be woken.
    pub deadline: Option<Deadline>,
    /// The output.
    pub output: Vec<u8>,
    /// The rest of the last response is not given.
    pub output_is_open: bool,
}

/// When a connection wants to be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Not at all.
    Never,
    /// So many milliseconds from now.
    In(u64),
}

/// One thing that happens.
#[derive(Clone, Debug)]
pub enum Step {
    /// The peer sends.
    Input(Vec<u8>),
    /// The peer closes its sending side.
    Finish,
    /// The server stops taking requests.
    Drain,
    /// The server refuses the connection.
    Refuse(Fault),
    /// Milliseconds pass.
    Wait(u64),
    /// The application does something about a stream.
    Deed(u32, Deed),
}

/// What an application does about a stream.
#[derive(Clone, Debug)]
pub enum Deed {
    /// Asks for body bytes.
    Want(u64),
    /// An informational response.
    Inform(Start),
    /// The whole response.
    Respond(Start, Vec<u8>),
    /// The start of a response.
    Start(Start),
    /// A piece of the body.
    Data(Vec<u8>),
    /// The end of the body, with trailers.
    End(Vec<(Vec<u8>, Vec<u8>)>),
    /// Gives up.
    Abort,
    /// The handler failed.
    Fail(Fault),
}

/// The start of a response, unchecked.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// The status code.
    pub status: u16,
    /// The media type, if given apart from the fields.
    pub content_type: Option<Vec<u8>>,
    /// Names and values.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Transcript {
    /// Reads a file's text.
    ///
    /// # Errors
    /// The line that is not understood, and why.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut transcript = Self {
            echo: true,
            ..Self::default()
        };
        let mut block = Block::default();
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            transcript
                .take_line(&mut block, number, line)
                .map_err(|reason| format!("line {number}: {reason}: {line}"))?;
        }
        transcript.close_block(&mut block);
        Ok(transcript)
    }

    /// All bytes the peer sends.
    pub fn input(&self) -> Vec<u8> {
        let steps = self.blocks.iter().flat_map(|block| &block.steps);
        steps
            .filter_map(|step| match step {
                Step::Input(bytes) => Some(bytes.as_slice()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .concat()
    }

    fn take_line(&mut self, block: &mut Block, number: usize, line: &str) -> Result<(), String> {
        let Some(kind) = line.chars().next() else {
            return Ok(());
        };
        let content = match line.get(1..) {
            Some("") => "",
            Some(rest) => rest.strip_prefix(' ').ok_or("no space behind the kind")?,
            None => return Err("no such kind".into()),
        };
        let is_step = matches!(kind, '>' | '!' | '@' | '~');
        if is_step && block.has_expectations() {
            self.close_block(block);
        }
        if is_step && block.steps.is_empty() {
            block.line = number;
        }
        match kind {
            '#' => {}
            ':' => self.take_setting(content)?,
            '>' => block.steps.push(Step::Input(unescape(content)?)),
            '!' => block.steps.push(parse_happening(content)?),
            '@' => block.steps.push(Step::Wait(parse_span(content)?)),
            '~' => block.steps.push(parse_deed(content)?),
            '=' => block.take_expectation(content)?,
            '<' => block.take_output(content)?,
            _ => return Err("no such kind".into()),
        }
        Ok(())
    }

    fn close_block(&mut self, block: &mut Block) {
        if !block.steps.is_empty() || block.has_expectations() {
            self.blocks.push(std::mem::take(block));
        }
    }

    fn take_setting(&mut self, content: &str) -> Result<(), String> {
        let (word, rest) = split_word(content);
        match word {
            "limit" => {
                let (name, value) = split_word(rest);
                let value = parse_number(value)?;
                self.limits.set(name, value).ok_or("no such limit")?;
            }
            "app" if rest == "none" => self.echo = false,
            "server" => self.server = Some(rest.into()),
            "date" => self.date = Some(rest.into()),
            "memory" => self.memory = Some(rest.into()),
            _ => return Err("no such setting".into()),
        }
        Ok(())
    }
}

impl Block {
    fn has_expectations(&self) -> bool {
        let states = self.fault.is_some() || self.close.is_some() || self.reading.is_some();
        states
            || self.deadline.is_some()
            || !self.events.is_empty()
            || !self.output.is_empty()
            || self.output_is_open
    }

    fn take_expectation(&mut self, content: &str) -> Result<(), String> {
        let (word, rest) = split_word(content);
        match word {
            "request" | "data" | "end" | "refused" | "broken" | "app-fault" => {
                self.events.push(content.trim_end().into());
            }
            "fault" => self.fault = Some(parse_fault(split_word(rest).0)?),
            "close" if matches!(rest, "" | "clean" | "linger" | "abort") => {
                self.close = Some(rest.into());
            }
            "reading" => self.reading = Some(parse_yes(rest)?),
            "deadline" if rest == "none" => self.deadline = Some(Deadline::Never),
            "deadline" => self.deadline = Some(Deadline::In(parse_span(rest)?)),
            _ => return Err("no such expectation".into()),
        }
        Ok(())
    }

    fn take_output(&mut self, content: &str) -> Result<(), String> {
        if self.output_is_open {
            return Err("output behind three dots".into());
        }
        let bytes = match content.strip_suffix("...") {
            Some(start) => {
                self.output_is_open = true;
                unescape(start)?
            }
            None => unescape(content)?,
        };
        self.output.extend(bytes);
        Ok(())
    }
}

/// The transcripts under `folder`, with their paths below it, in the order of these.
///
/// # Errors
/// A folder or file that can't be read, or is no transcript.
pub fn all_under(folder: &Path) -> io::Result<Vec<(String, Transcript)>> {
    let texts = texts_under(folder)?.into_iter();
    let parsed = texts.map(|(name, text)| match Transcript::parse(&text) {
        Ok(transcript) => Ok((name, transcript)),
        Err(reason) => Err(io::Error::other(format!("{name}: {reason}"))),
    });
    parsed.collect()
}

/// The texts of the files under `folder`, variants by themselves, with their paths below it, in the order of these.
///
/// # Errors
/// A folder or file that can't be read, or whose variants are wrong.
pub(crate) fn texts_under(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let (mut folders, mut texts) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "t") {
                let name = path
                    .strip_prefix(folder)
                    .unwrap_or(&path)
                    .display()
                    .to_string();
                let found = variants(&fs::read_to_string(&path)?);
                let found = found.map_err(|why| io::Error::other(format!("{name}: {why}")))?;
                let named = found.into_iter();
                texts.extend(named.map(|(variant, text)| (format!("{name}{variant}"), text)));
            }
        }
    }
    texts.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(texts)
}

/// The texts that a file stands for, each with the suffix of its name: the text itself if it has no `?` lines, else one for
/// each of these, named `:NAME`. Lines keep their numbers.
///
/// # Errors
/// Variants of one name, or variants that no line mentions.
pub fn variants(text: &str) -> Result<Vec<(String, String)>, String> {
    let is_variant = |line: &&str| line.starts_with("? ");
    let listed: Vec<_> = text.lines().filter(is_variant).collect();
    if listed.is_empty() {
        return Ok(vec![(String::new(), text.into())]);
    }
    let mut named: Vec<(String, String)> = Vec::new();
    for line in listed {
        let (name, content) = split_word(line.get(2..).unwrap_or_default());
        let name = format!(":{name}");
        if named.iter().any(|(other, _)| *other == name) {
            return Err(format!("two variants {name}"));
        }
        let mut filled = String::new();
        for line in text.lines() {
            if !is_variant(&line) {
                filled.push_str(&fill(line, content));
            }
            filled.push('\n');
        }
        named.push((name, filled));
    }
    let rest = text.lines().filter(|line| !is_variant(line));
    if rest.into_iter().all(|line| fill(line, "") == line) {
        return Err("variants, and no line with \\?".into());
    }
    Ok(named)
}

/// `line` with `content` in place of each `\?`.
fn fill(line: &str, content: &str) -> String {
    let (mut filled, mut characters) = (String::new(), line.chars());
    while let Some(character) = characters.next() {
        match (character, characters.as_str().chars().next()) {
            ('\\', Some('?')) => {
                characters.next();
                filled.push_str(content);
            }
            ('\\', Some(escaped)) => {
                characters.next();
                filled.extend(['\\', escaped]);
            }
            _ => filled.push(character),
        }
    }
    filled
}

/// What peers send in the transcripts under `folder`; long inputs are left out, for they are runs of one byte
/// that cost a fuzzer time and show it nothing.
///
/// # Errors
/// See [`all_under`].
pub fn inputs_under(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let transcripts = all_under(folder)?;
    let inputs = transcripts.iter().map(|(_, transcript)| transcript.input());
    Ok(inputs.filter(|input| input.len() < 4096).collect())
}

fn parse_happening(content: &str) -> Result<Step, String> {
    match split_word(content) {
        ("finish", "") => Ok(Step::Finish),
        ("drain", "") => Ok(Step::Drain),
        ("refuse", fault) => parse_fault(fault).map(Step::Refuse),
        _ => Err("no such happening".into()),
    }
}

fn parse_deed(content: &str) -> Result<Step, String> {
    let (stream, rest) = split_word(content);
    let stream = u32::try_from(parse_number(stream)?).map_err(|_| "no such stream")?;
    let (verb, rest) = split_word(rest);
    let deed = match verb {
        "want" if rest == "all" => Deed::Want(u64::MAX),
        "want" => Deed::Want(parse_number(rest)?),
        "inform" => Deed::Inform(parse_start(rest)?.0),
        "respond" => {
            let (start, body) = parse_start(rest)?;
            Deed::Respond(start, body)
        }
        "start" => Deed::Start(parse_start(rest)?.0),
        "data" => Deed::Data(unescape(rest)?),
        "end" => Deed::End(parse_head(&unescape(rest)?)?.0),
        "abort" => Deed::Abort,
        "fail" => Deed::Fail(parse_fault(rest)?),
        _ => return Err("no such deed".into()),
    };
    Ok(Step::Deed(stream, deed))
}

fn parse_start(content: &str) -> Result<(Start, Vec<u8>), String> {
    let (status, rest) = split_word(content);
    let status = u16::try_from(parse_number(status)?).map_err(|_| "no such status")?;
    let (mut fields, body) = parse_head(&unescape(rest)?)?;
    let content_type = fields.iter().position(|(name, _)| name == b":type");
    let start = Start {
        status,
        content_type: content_type.map(|index| fields.remove(index).1),
        fields,
    };
    Ok((start, body))
}

type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

/// Splits `name: value\r\n` lines and an empty line from what follows.
fn parse_head(bytes: &[u8]) -> Result<(FieldList, Vec<u8>), String> {
    let (mut fields, mut rest) = (FieldList::new(), bytes);
    while !rest.is_empty() {
        let end = rest.windows(2).position(|pair| pair == b"\r\n");
        let (line, after) = rest.split_at(end.ok_or("a head does not end in an empty line")?);
        rest = after.get(2..).unwrap_or_default();
        if line.is_empty() {
            break;
        }
        // The colon of `:type` is part of the name.
        let colon = line.iter().skip(1).position(|&byte| byte == b':');
        let (name, value) = line.split_at(colon.ok_or("a field has no colon")? + 1);
        let value = value.get(1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        fields.push((name.to_vec(), value.to_vec()));
    }
    Ok((fields, rest.to_vec()))
}

fn split_word(text: &str) -> (&str, &str) {
    text.split_once(' ').unwrap_or((text, ""))
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("not a number: {text:?}"))
}

fn parse_span(text: &str) -> Result<u64, String> {
    parse_number(text.strip_prefix('+').ok_or("no plus sign")?)
}

fn parse_yes(text: &str) -> Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("neither yes nor no".into()),
    }
}

fn parse_fault(name: &str) -> Result<Fault, String> {
    let mut faults = Fault::ALL.iter().copied();
    faults
        .find(|fault| fault.name() == name)
        .ok_or_else(|| format!("no such fault: {name:?}"))
}

/// The bytes that `text` spells.
///
/// # Errors
/// An escape that is none.
pub fn unescape(text: &str) -> Result<Vec<u8>, String> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((before, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(before.as_bytes());
        let kind = escape.chars().next().ok_or("a backslash at the end")?;
        let after = escape.get(kind.len_utf8()..).unwrap_or_default();
        rest = match kind {
            'r' => push(&mut bytes, b'\r', after),
            'n' => push(&mut bytes, b'\n', after),
            't' => push(&mut bytes, b'\t', after),
            '\\' => push(&mut bytes, b'\\', after),
            'x' => {
                let (digits, after) = after.split_at_checked(2).ok_or("half an escape")?;
                let byte = u8::from_str_radix(digits, 16).map_err(|_| "not hexadecimal")?;
                push(&mut bytes, byte, after)
            }
            '*' => {
                let (times, after) = after.split_once('{').ok_or("no brace behind \\*")?;
                let (what, after) = after.split_once('}').ok_or("no closing brace")?;
                let times = usize::try_from(parse_number(times)?).map_err(|_| "too often")?;
                bytes.extend(unescape(what)?.repeat(times));
                after
            }
            _ => return Err(format!("no such escape: \\{kind}")),
        };
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

fn push<'t>(bytes: &mut Vec<u8>, byte: u8, rest: &'t str) -> &'t str {
    bytes.push(byte);
    rest
}

/// `bytes` as a transcript spells them, without `\*`.
pub fn escape(bytes: &[u8]) -> String {
    use std::fmt::Write;

    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'\r' => text.push_str("\\r"),
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => write!(text, "\\x{byte:02x}").expect("a string takes everything"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unescape(&escape(&all)), Ok(all));
        assert_eq!(unescape(r"a\*3{b\n}c"), Ok(b"ab\nb\nb\nc".to_vec()),);
        for bad in [r"\", r"\q", r"\x1", r"\xgg", r"\*3", r"\*a{b}"] {
            assert!(unescape(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn blocks_begin_with_a_step_behind_an_expectation() {
        let text = "# a\n: limit fields_max 3\n> b\n@ +5\n= close clean\n< c...\n> d\n";
        let transcript = Transcript::parse(text).expect("well-formed");
        assert_eq!(transcript.limits.fields_max, 3);
        let lines: Vec<_> = transcript.blocks.iter().map(|b| b.line).collect();
        assert_eq!(lines, [3, 7]);
        assert!(transcript.blocks.first().is_some_and(|b| b.output_is_open));
    }

    #[test]
    fn variants_are_put_in_place() {
        let text = "# a\n? one  1\\r\n? none\n> b\\?c\\\\?\n";
        let named = |name: &str, line: &str| (name.to_owned(), format!("# a\n\n\n{line}\n"));
        let expected = vec![named(":one", r"> b 1\rc\\?"), named(":none", r"> bc\\?")];
        assert_eq!(variants(text), Ok(expected));
        assert_eq!(variants("> a\n"), Ok(vec![(String::new(), "> a\n".into())]));
        for bad in ["? a b\n? a c\n> \\?", "? a b\n> c"] {
            assert!(variants(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn says_which_line_is_not_understood() {
        for bad in [
            "?",
            ": limit a 1",
            "= close soon",
            "~ 0 dance",
            ">x",
            "< a...\n< b",
            "! refuse X",
        ] {
            assert!(Transcript::parse(bad).is_err(), "{bad}");
        }
    }
}
