//! Route patterns: `/items/{id:int}/files/{name}.json`, `/assets/{rest:path}`.

use std::fmt::{self, Write};

use crate::percent::normalize;

/// What the text of a parameter must look like, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Converter {
    /// Decimal digits, at most 18, perhaps behind a minus: fits 64 bits signed.
    Int,
    /// Decimal digits with a point between some of them, or none, perhaps behind a minus; of a finite float.
    Float,
    /// Thirty-two hexadecimal digits in five groups (RFC 9562 §4).
    Uuid,
    /// One segment, not empty.
    Str,
    /// The rest of the path, slashes included; may be empty.
    Path,
}

impl Converter {
    /// Its name in a pattern.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "int" => Self::Int,
            "float" => Self::Float,
            "uuid" => Self::Uuid,
            "str" => Self::Str,
            "path" => Self::Path,
            _ => return None,
        })
    }

    /// Whether `text` (still percent-encoded) is one of its values.
    pub fn accepts(self, text: &str) -> bool {
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        match self {
            Self::Int => unsigned.len() <= 18 && digits(unsigned),
            Self::Float => {
                let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
                digits(whole) && digits(fraction) && unsigned.parse().is_ok_and(f64::is_finite)
            }
            Self::Uuid => {
                text.len() == 36
                    && text.bytes().enumerate().all(|(at, byte)| match at {
                        8 | 13 | 18 | 23 => byte == b'-',
                        _ => byte.is_ascii_hexdigit(),
                    })
            }
            Self::Str | Self::Path => true,
        }
    }
}

/// A parameter of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// What its text must look like.
    pub converter: Converter,
}

/// A parsed pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The pattern in matchit's form, with numbers for names, and `{*n}` for a rest.
    pub(crate) shape: String,
    /// The parameters from left to right.
    pub params: Vec<Param>,
}

/// Why a pattern is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(pub(crate) String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Parses `pattern`.
    ///
    /// # Errors
    /// [`PatternError`] says what was expected and what came.
    pub fn parse(pattern: &str) -> Result<Self, PatternError> {
        let error = |what: String| PatternError(format!("route pattern {pattern:?}: {what}"));
        if pattern == "*" {
            return Ok(Self {
                shape: "*".to_owned(),
                params: Vec::new(),
            });
        }
        if !pattern.starts_with('/') {
            return Err(error("must start with a slash".to_owned()));
        }
        let (mut shape, mut params, mut rest) = (String::new(), Vec::<Param>::new(), pattern);
        while let Some(open) = rest.find(['{', '}']) {
            if rest.as_bytes()[open] == b'}' {
                return Err(error("has a } without a {".to_owned()));
            }
            shape.push_str(&normalize(&rest.as_bytes()[..open]));
            let inside = &rest[open + 1..];
            let close = inside
                .find('}')
                .ok_or_else(|| error("has a { without a }".to_owned()))?;
            let (name, converter) = declaration(&inside[..close]).map_err(error)?;
            if params.iter().any(|param| param.name == name) {
                return Err(error(format!("parameter {name:?} occurs twice")));
            }
            rest = &inside[close + 1..];
            let star = if converter == Converter::Path {
                "*"
            } else {
                ""
            };
            if converter == Converter::Path && !rest.is_empty() {
                return Err(error(format!("nothing may follow {{{name}:path}}")));
            }
            if converter == Converter::Path && !shape.ends_with('/') {
                return Err(error(format!("{{{name}:path}} must begin a segment")));
            }
            if shape
                .rsplit('/')
                .next()
                .is_some_and(|begun| begun.contains('{'))
            {
                return Err(error(format!(
                    "parameter {name:?} is the second in its segment"
                )));
            }
            write!(shape, "{{{star}p{}}}", params.len()).expect("a String takes any text");
            params.push(Param {
                name: name.to_owned(),
                converter,
            });
        }
        shape.push_str(&normalize(rest.as_bytes()));
        Ok(Self { shape, params })
    }
}

/// The name and the converter that stand between braces: `name` or `name:converter`.
fn declaration(inside: &str) -> Result<(&str, Converter), String> {
    let (name, kind) = inside.split_once(':').unwrap_or((inside, "str"));
    let converter = Converter::from_name(kind)
        .ok_or_else(|| format!("converter {kind:?} is not one of str, int, float, uuid, path"))?;
    if name.is_empty() || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(format!("parameter name {name:?} is not an identifier"));
    }
    Ok((name, converter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_float_is_digits_and_finite() {
        for text in ["0", "-1.5", "007.250", "179769313486231570000", "0.0000001"] {
            assert!(Converter::Float.accepts(text), "{text}");
        }
        let long = "9".repeat(400);
        for text in [
            "", "-", ".5", "5.", "1e3", "+1", "1.2.3", "inf", "nan", &long,
        ] {
            assert!(!Converter::Float.accepts(text), "{text}");
        }
    }

    #[test]
    fn splits_shape_and_converters() {
        let pattern = Pattern::parse("/items/{id:int}/{rest:path}").expect("valid");
        assert_eq!(pattern.shape, "/items/{p0}/{*p1}");
        assert_eq!(
            pattern.params[0],
            Param {
                name: "id".into(),
                converter: Converter::Int
            }
        );
        assert_eq!(pattern.params[1].converter, Converter::Path);
    }

    #[test]
    fn refuses_malformed_patterns_by_name() {
        for (pattern, part) in [
            ("items", "start with a slash"),
            ("/{id", "{ without a }"),
            ("/id}", "} without a {"),
            ("/{id:integer}", "is not one of"),
            ("/{}", "is not an identifier"),
            ("/{a}/{a}", "occurs twice"),
            ("/{a:path}/b", "nothing may follow"),
            ("/x{a:path}", "must begin a segment"),
            ("/{a}.{b}", "second in its segment"),
        ] {
            let message = Pattern::parse(pattern).expect_err(pattern).to_string();
            assert!(message.contains(part), "{message}");
        }
    }
}
