//! From the path of a request to a path below a mount's directory.
//!
//! Decoded once and only once. An ambiguous path is refused instead of normalised:
//! empty and dot segments, an encoded slash, NUL. (`openat2` would hold all of them inside anyway.)

use std::borrow::Cow;

/// A path below a directory: segments between single slashes, none of them empty, `.` or `..`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Below<'a> {
    /// Without a slash at either end; empty for the directory itself.
    pub(crate) path: Cow<'a, [u8]>,
    /// The request's path ended in a slash: it asks for a directory.
    pub(crate) is_directory: bool,
}

/// The decoded path of a request; `None` if it has an escape that no file is named by.
pub(crate) fn decode(encoded: &[u8]) -> Option<Cow<'_, [u8]>> {
    let is_slash = |escape: &[u8]| escape.eq_ignore_ascii_case(b"%2f");
    if encoded.contains(&b'%') && encoded.windows(3).any(is_slash) {
        return None;
    }
    let decoded = citius_route::decode(encoded);
    (!decoded.contains(&0)).then_some(decoded)
}

/// What a decoded `path` means below `prefix` (which has no slash at its end); `None` if it is not below it.
pub(crate) fn strip<'a>(path: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    match path.strip_prefix(prefix)? {
        rest @ ([] | [b'/', ..]) => Some(rest),
        _ => None,
    }
}

/// The path below the directory that `rest` names; `None` if it names none.
pub(crate) fn below(rest: &[u8], with_dotfiles: bool) -> Option<Below<'_>> {
    let is_directory = rest.last() == Some(&b'/');
    let inner = rest.strip_prefix(b"/").unwrap_or(rest);
    let inner = inner.strip_suffix(b"/").unwrap_or(inner);
    let is_proper = |segment: &[u8]| match segment {
        [] | b"." | b".." => false,
        [b'.', ..] => with_dotfiles,
        _ => true,
    };
    if !inner.is_empty() && !inner.split(|&byte| byte == b'/').all(is_proper)
        || inner.is_empty() && rest.len() > 1
    {
        return None;
    }
    Some(Below {
        path: Cow::Borrowed(inner),
        is_directory,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(encoded: &str, with_dotfiles: bool, expected: Option<(&str, bool)>) {
        let decoded = decode(encoded.as_bytes());
        let found = decoded
            .as_deref()
            .and_then(|path| strip(path, b"/s"))
            .and_then(|rest| below(rest, with_dotfiles));
        let found = found.map(|below| (below.path.into_owned(), below.is_directory));
        assert_eq!(
            found,
            expected.map(|(path, is_directory)| (path.as_bytes().to_vec(), is_directory)),
            "{encoded}"
        );
    }

    #[test]
    fn names_what_is_below_and_nothing_else() {
        for (encoded, expected) in [
            ("/s/a", Some(("a", false))),
            ("/s/a/b.css", Some(("a/b.css", false))),
            ("/s/a/", Some(("a", true))),
            ("/s", Some(("", false))),
            ("/s/", Some(("", true))),
            ("/%73/%61%20b", Some(("a b", false))),
            ("/s/%252e%252e/a", Some(("%2e%2e/a", false))),
            ("/s/a..b", Some(("a..b", false))),
            ("/s/a\\..\\b", Some(("a\\..\\b", false))),
            ("/sa", None),
            ("/t/a", None),
            ("/s//a", None),
            ("/s//", None),
            ("/s/a//", None),
            ("/s/./a", None),
            ("/s/../a", None),
            ("/s/..", None),
            ("/s/a/../b", None),
            ("/s/%2e%2e/a", None),
            ("/s/.%2E/a", None),
            ("/s/..%2fa", None),
            ("/s/a%2Fb", None),
            ("/s/a%00b", None),
            ("/s/.env", None),
            ("/s/.git/config", None),
        ] {
            check(encoded, false, expected);
        }
        check("/s/.well-known/x", true, Some((".well-known/x", false)));
        check("/s/../x", true, None);
    }
}
