//! Arrays in the text format (PostgreSQL's manual, section 8.15): `{1,NULL,"a,b"}`, `{{1,2},{3,4}}`, `[0:1]={a,b}`.

use alloc::borrow::Cow;
use alloc::string::String;

use crate::fault::Fault;

/// An array as the server has written it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextArray<'a> {
    text: &'a str,
    delimiter: u8,
}

/// What an array is made of, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// An array begins: the whole, or one in it.
    Open,
    /// It ends.
    Close,
    /// NULL.
    Null,
    /// The text of an element.
    Text(Cow<'a, str>),
}

const MALFORMED: Fault = Fault::Protocol("a malformed array");

/// PostgreSQL's own limit of dimensions.
const DEPTH_MAX: usize = 6;

impl<'a> TextArray<'a> {
    pub(crate) fn of(text: &'a str, delimiter: u8) -> Self {
        Self { text, delimiter }
    }

    /// Calls `visit` with each piece.
    ///
    /// # Errors
    /// It is no array, or `visit` fails.
    pub fn walk<E: From<Fault>>(
        &self,
        mut visit: impl FnMut(Piece<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        // Bounds that do not begin at 1 come before the array.
        let start = self.text.find('{').ok_or(MALFORMED)?;
        let mut rest = self.text.get(start..).unwrap_or_default();
        let mut depth = 0;
        loop {
            let first = *rest.as_bytes().first().ok_or(MALFORMED)?;
            match first {
                b'{' if depth < DEPTH_MAX => {
                    depth += 1;
                    visit(Piece::Open)?;
                    rest = &rest[1..];
                }
                b'}' if depth > 0 => {
                    depth -= 1;
                    visit(Piece::Close)?;
                    rest = &rest[1..];
                    if depth == 0 {
                        return if rest.is_empty() {
                            Ok(())
                        } else {
                            Err(MALFORMED.into())
                        };
                    }
                }
                b'{' | b'}' => return Err(MALFORMED.into()),
                byte if byte == self.delimiter => rest = &rest[1..],
                b'"' => {
                    let (text, after) = quoted(&rest[1..]).ok_or(MALFORMED)?;
                    visit(Piece::Text(text))?;
                    rest = after;
                }
                _ => {
                    let is_end = |byte: &u8| *byte == self.delimiter || *byte == b'}';
                    let end = rest
                        .bytes()
                        .position(|byte| is_end(&byte))
                        .ok_or(MALFORMED)?;
                    // Both ends are ASCII.
                    let (text, after) = rest.split_at_checked(end).ok_or(MALFORMED)?;
                    rest = after;
                    visit(match text {
                        "NULL" => Piece::Null,
                        text => Piece::Text(Cow::Borrowed(text)),
                    })?;
                }
            }
        }
    }
}

/// The text up to the quote that ends it, and what is behind that; a backslash stands before a quote and a backslash.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.bytes().position(|byte| matches!(byte, b'"' | b'\\'))?;
    let (plain, mut rest) = text.split_at_checked(end)?;
    if let Some(after) = rest.strip_prefix('"') {
        return Some((Cow::Borrowed(plain), after));
    }
    let mut unescaped = String::from(plain);
    loop {
        let mut characters = rest.chars();
        match characters.next()? {
            '"' => return Some((Cow::Owned(unescaped), characters.as_str())),
            '\\' => unescaped.push(characters.next()?),
            other => unescaped.push(other),
        }
        rest = characters.as_str();
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;

    fn shown(text: &str, delimiter: u8) -> Result<String, Fault> {
        let mut pieces: Vec<String> = Vec::new();
        TextArray::of(text, delimiter).walk(|piece| {
            pieces.push(match piece {
                Piece::Open => "(".into(),
                Piece::Close => ")".into(),
                Piece::Null => "-".into(),
                Piece::Text(text) => text.into_owned(),
            });
            Ok::<_, Fault>(())
        })?;
        Ok(pieces.join(" "))
    }

    #[test]
    fn arrays_are_read_as_the_server_writes_them() {
        for (text, pieces) in [
            ("{}", "( )"),
            ("{a,NULL,\"NULL\"}", "( a - NULL )"),
            ("{{a,b},{c,d}}", "( ( a b ) ( c d ) )"),
            ("[0:1]={a,b}", "( a b )"),
            (r#"{"a\"b\\c","é,{}"}"#, r#"( a"b\c é,{} )"#),
        ] {
            assert_eq!(shown(text, b',').as_deref(), Ok(pieces), "{text}");
        }
        assert_eq!(
            shown("{(1,2),(0,0);(3,4),(1,1)}", b';').as_deref(),
            Ok("( (1,2),(0,0) (3,4),(1,1) )")
        );
    }

    #[test]
    fn what_is_no_array_is_a_fault() {
        for text in [
            "",
            "a",
            "{",
            "{a",
            "{\"a}",
            "{\"a\\",
            "{a}}",
            "{{{{{{{a}}}}}}}",
            "{}x",
        ] {
            assert!(shown(text, b',').is_err(), "{text}");
        }
    }
}
