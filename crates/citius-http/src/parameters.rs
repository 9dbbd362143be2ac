//! Reads `type/subtype; name=value; name="quoted"` (RFC 9110 §5.6.6; RFC 7578 §4.2 for `Content-Disposition`).
//!
//! Reads each byte of a value a constant number of times. A value that breaks the grammar is read as
//! browsers read one (WHATWG MIME Sniffing §4.4): an unquoted value ends at the next `;`, a quoted one without its
//! last quote ends with the input, and a parameter without a name that is a token, or without `=`, is left out.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::fields::is_token_byte;

/// The part of `value` before the first `;`, and the parameters after it.
#[must_use]
pub fn split(value: &str) -> (&str, Parameters<'_>) {
    split_escaped(value, |_| true)
}

/// [`split`] where a backslash escapes the characters of `is_escaped` alone, and stands for itself before others.
#[must_use]
pub fn split_escaped(value: &str, is_escaped: fn(char) -> bool) -> (&str, Parameters<'_>) {
    let (head, rest) = value.split_once(';').unwrap_or((value, ""));
    (trim(head), Parameters { rest, is_escaped })
}

/// The parameters of a field value in their order, names as they came, quoted values without their quotes.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    rest: &'a str,
    /// Of which characters a backslash is an escape.
    is_escaped: fn(char) -> bool,
}

impl<'a> Iterator for Parameters<'a> {
    type Item = (&'a str, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.rest.is_empty() {
            let end = self.rest.find([';', '=']).unwrap_or(self.rest.len());
            let (name, after) = self.rest.split_at(end);
            let Some(value) = after.strip_prefix('=') else {
                self.rest = after.strip_prefix(';').unwrap_or_default();
                continue;
            };
            let value = self.value(value);
            let name = trim(name);
            if !name.is_empty() && name.bytes().all(is_token_byte) {
                return Some((name, value));
            }
        }
        None
    }
}

impl<'a> Parameters<'a> {
    /// The value at the start of `text`; what follows the `;` after it is left in `rest`.
    fn value(&mut self, text: &'a str) -> Cow<'a, str> {
        let text = text.trim_start_matches(is_space);
        let (value, after) = if let Some(quoted) = text.strip_prefix('"') {
            unquote(quoted, self.is_escaped)
        } else {
            let end = text.find(';').unwrap_or(text.len());
            let (token, after) = text.split_at(end);
            (Cow::Borrowed(trim(token)), after)
        };
        self.rest = after.split_once(';').map_or("", |(_, rest)| rest);
        value
    }
}

/// The content of a quoted string whose first quote has been read, and what follows its last one.
fn unquote(text: &str, is_escaped: fn(char) -> bool) -> (Cow<'_, str>, &str) {
    let Some(end) = text.find(['"', '\\']) else {
        return (Cow::Borrowed(text), "");
    };
    let (plain, mut rest) = text.split_at(end);
    if let Some(after) = rest.strip_prefix('"') {
        return (Cow::Borrowed(plain), after);
    }
    let mut content = String::from(plain);
    while let Some(escape) = rest.strip_prefix('\\') {
        let mut characters = escape.chars();
        let text = match characters.next() {
            Some(character) if is_escaped(character) => {
                content.push(character);
                characters.as_str()
            }
            _ => {
                content.push('\\');
                escape
            }
        };
        let end = text.find(['"', '\\']).unwrap_or(text.len());
        let (plain, after) = text.split_at(end);
        content.push_str(plain);
        rest = after;
    }
    (
        Cow::Owned(content),
        rest.strip_prefix('"').unwrap_or_default(),
    )
}

/// `text` without the optional whitespace of RFC 9110 §5.6.3 around it.
fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

const fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn read(value: &str) -> (&str, Vec<(&str, Cow<'_, str>)>) {
        let (head, parameters) = split(value);
        (head, parameters.collect())
    }

    #[test]
    fn values_within_the_grammar() {
        for (value, head, parameters) in [
            ("text/plain", "text/plain", &[][..]),
            ("", "", &[]),
            (" a ;\tb=c ; d=e\t", "a", &[("b", "c"), ("d", "e")]),
            ("a;;b=c;", "a", &[("b", "c")]),
            (r#"a; b="x;y=z"; c=d"#, "a", &[("b", "x;y=z"), ("c", "d")]),
            (r#"a; b="""#, "a", &[("b", "")]),
            (
                r#"a; b="\"q\\\ü" ;c=d"#,
                "a",
                &[("b", r#""q\ü"#), ("c", "d")],
            ),
            ("a; B=1; b=2", "a", &[("B", "1"), ("b", "2")]),
        ] {
            let parameters = parameters
                .iter()
                .map(|&(name, text)| (name, Cow::Borrowed(text)));
            assert_eq!(read(value), (head, parameters.collect()), "{value}");
        }
    }

    #[test]
    fn values_outside_the_grammar_are_read_as_browsers_read_them() {
        for (value, parameters) in [
            ("a; b; c=d", &[("c", "d")][..]),
            ("a; =x; ü=y; n m=z; c=d", &[("c", "d")]),
            ("a; b = c", &[("b", "c")]),
            ("a; b=c d; e=f", &[("b", "c d"), ("e", "f")]),
            ("a; b=", &[("b", "")]),
            (r#"a; b="c; d=e"#, &[("b", "c; d=e")]),
            (r#"a; b="c\"#, &[("b", r"c\")]),
            (r#"a; b="c"junk="x"; d=e"#, &[("b", "c"), ("d", "e")]),
            (r#"a; b=c"d;e=f"#, &[("b", r#"c"d"#), ("e", "f")]),
        ] {
            let expected: Vec<_> = parameters
                .iter()
                .map(|&(name, text)| (name, Cow::Borrowed(text)))
                .collect();
            assert_eq!(read(value).1, expected, "{value}");
        }
    }
}
