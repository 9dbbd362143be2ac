//! What an access line consists of: `text`, `json`, `common`, `combined`, or gunicorn's `%(h)s` atoms.

use std::fmt;

/// The parts of a line, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub(crate) shape: Shape,
    /// Names of request fields that a line quotes, in lower case; a part refers to its place.
    pub(crate) fields: Vec<Box<[u8]>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Parts(Vec<Part>),
    Json,
}

/// One part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Literal(Box<[u8]>),
    /// Address and port, `-` without.
    Client,
    ClientHost,
    ClientPort,
    /// `2026-01-31 12:34:56.789`, local.
    LocalTime,
    /// `[31/Jan/2026:12:34:56 +0100]`.
    ClfTime,
    RequestLine,
    Method,
    Target,
    Path,
    Query,
    Protocol,
    Status,
    Bytes,
    /// `-` for none.
    BytesOrDash,
    Seconds,
    SecondsWithFraction,
    /// Whole milliseconds.
    Milliseconds,
    /// Milliseconds with one decimal.
    MillisecondsWithFraction,
    Microseconds,
    Pid,
    Field(usize),
    Route,
    RequestId,
    TraceId,
    SpanId,
    Fault,
    /// The code of a remote procedure call.
    RpcCode,
    /// A space and the code, nothing without one.
    RpcCodeBehind,
    /// How long another server took, milliseconds with one decimal.
    UpstreamTime,
}

/// Why a format is invalid; the text is for its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError(String);

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for FormatError {}

/// Request fields that one line may quote.
const FIELDS_MAX: usize = 8;

const COMMON: &str = r#"%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s"#;
const COMBINED: &str = r#"%(h)s %(l)s %(u)s %(t)s "%(r)s" %(s)s %(b)s "%(f)s" "%(a)s""#;
const TEXT: &str = r#"%(local)s INFO  %(client)s - "%(r)s" %(s)s%( rpc)s %(B)sB %(ms)sms"#;

impl Format {
    /// Whether a line says how long another server took.
    pub(crate) fn tells_upstream_time(&self) -> bool {
        match &self.shape {
            Shape::Json => true,
            Shape::Parts(parts) => parts.contains(&Part::UpstreamTime),
        }
    }

    /// The format called `text`, or spelled by it.
    ///
    /// # Errors
    /// It is no name, and no text with atoms, or has an atom that is not known.
    pub fn parse(text: &str) -> Result<Self, FormatError> {
        match text {
            "text" => Self::of_atoms(TEXT),
            "common" => Self::of_atoms(COMMON),
            "combined" => Self::of_atoms(COMBINED),
            "json" => Ok(Self {
                shape: Shape::Json,
                fields: vec![Box::from(&b"referer"[..]), Box::from(&b"user-agent"[..])],
            }),
            _ if text.contains("%(") => Self::of_atoms(text),
            _ => Err(FormatError(format!(
                "expected text, json, common, combined or a line of atoms such as %(h)s, got {text:?}"
            ))),
        }
    }

    fn of_atoms(text: &str) -> Result<Self, FormatError> {
        let (mut parts, mut fields) = (Vec::new(), Vec::new());
        let mut rest = text;
        while let Some(at) = rest.find("%(") {
            push_literal(&mut parts, &rest[..at])?;
            let Some(end) = rest[at..].find(')') else {
                return Err(FormatError(format!("{:?} has no )", &rest[at..])));
            };
            let name = &rest[at + 2..at + end];
            rest = rest[at + end + 1..].strip_prefix('s').ok_or_else(|| {
                FormatError(format!(
                    "expected %({name})s, the s behind %({name}) is missing"
                ))
            })?;
            parts.push(atom(name, &mut fields)?);
        }
        push_literal(&mut parts, rest)?;
        Ok(Self {
            shape: Shape::Parts(parts),
            fields,
        })
    }
}

fn push_literal(parts: &mut Vec<Part>, text: &str) -> Result<(), FormatError> {
    let text = text.replace("%%", "%");
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err(FormatError("a line cannot hold a control character".into()));
    }
    if !text.is_empty() {
        parts.push(Part::Literal(text.into_bytes().into()));
    }
    Ok(())
}

/// The part called `name`: gunicorn's atoms, and ours with whole words for names.
fn atom(name: &str, fields: &mut Vec<Box<[u8]>>) -> Result<Part, FormatError> {
    Ok(match name {
        "h" => Part::ClientHost,
        "port" => Part::ClientPort,
        "client" => Part::Client,
        // What identd and HTTP authentication would say; servers do not know.
        "l" | "u" => Part::Literal(Box::from(&b"-"[..])),
        "t" => Part::ClfTime,
        "local" => Part::LocalTime,
        "r" => Part::RequestLine,
        "m" => Part::Method,
        "target" => Part::Target,
        "U" => Part::Path,
        "q" => Part::Query,
        "H" => Part::Protocol,
        "s" => Part::Status,
        "B" => Part::Bytes,
        "b" => Part::BytesOrDash,
        "T" => Part::Seconds,
        "L" => Part::SecondsWithFraction,
        "M" => Part::Milliseconds,
        "ms" => Part::MillisecondsWithFraction,
        "D" => Part::Microseconds,
        "p" => Part::Pid,
        "f" => field("referer", fields)?,
        "a" => field("user-agent", fields)?,
        "route" => Part::Route,
        "id" => Part::RequestId,
        "trace" => Part::TraceId,
        "span" => Part::SpanId,
        "fault" => Part::Fault,
        "rpc" => Part::RpcCode,
        " rpc" => Part::RpcCodeBehind,
        "upstream" => Part::UpstreamTime,
        _ => {
            let inner = name.strip_prefix('{').and_then(|rest| rest.split_once('}'));
            return match inner {
                Some((header, "i")) => field(header, fields),
                Some((_, "o" | "e")) => Err(FormatError(format!(
                    "%({name})s: headers of responses and variables are not logged; %({{name}}i)s is a \
                     request's header"
                ))),
                _ => Err(FormatError(format!(
                    "no atom is called {name}; there are h port client l u t local r m target U q H s b B \
                     T L M ms D p f a route id trace span fault rpc upstream and {{name}}i"
                ))),
            };
        }
    })
}

fn field(name: &str, fields: &mut Vec<Box<[u8]>>) -> Result<Part, FormatError> {
    let name = name.to_ascii_lowercase();
    if !citius_http::fields::is_token(name.as_bytes()) {
        return Err(FormatError(format!("{name:?} is no name of a header")));
    }
    let known = fields.iter().position(|known| **known == *name.as_bytes());
    let place = known.unwrap_or_else(|| {
        fields.push(name.into_bytes().into());
        fields.len() - 1
    });
    if fields.len() > FIELDS_MAX {
        return Err(FormatError(format!(
            "a line quotes at most {FIELDS_MAX} headers of a request"
        )));
    }
    Ok(Part::Field(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_atoms() {
        for text in [
            "text",
            "json",
            "common",
            "combined",
            "%(h)s %({X-Real-IP}i)s 100%%",
        ] {
            assert!(Format::parse(text).is_ok(), "{text}");
        }
        let format = Format::parse("%({Referer}i)s %(f)s").unwrap();
        assert_eq!(format.fields, [Box::from(&b"referer"[..])]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, complaint) in [
            ("jsn", "expected text, json"),
            ("%(h)", "the s behind %(h)"),
            ("%(h", "has no )"),
            ("%(zz)s", "no atom is called zz"),
            ("%({date}o)s", "headers of responses"),
            ("%({a b}i)s", "no name of a header"),
            ("%(h)s\n", "control character"),
        ] {
            let error = Format::parse(text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{text}: {error}");
        }
    }
}
