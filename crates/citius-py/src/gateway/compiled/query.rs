//! Parameters of a query string for code without Python: the raw query in, the last value of a name out.

use std::borrow::Cow;

use citius_route::decode;

/// The last value of the parameter `name`, decoded; as `citius.QueryParams` has it.
pub(super) fn last<'q>(query: &'q [u8], name: &[u8]) -> Option<Cow<'q, [u8]>> {
    query
        .rsplit(|&byte| byte == b'&')
        .filter(|pair| !pair.is_empty())
        .find_map(|pair| {
            let (found, value) = match pair.iter().position(|&byte| byte == b'=') {
                Some(at) => (&pair[..at], &pair[at + 1..]),
                None => (pair, &[][..]),
            };
            (found == name || plain(found).as_ref() == name).then(|| plain(value))
        })
}

/// `application/x-www-form-urlencoded` undone.
fn plain(encoded: &[u8]) -> Cow<'_, [u8]> {
    if encoded.contains(&b'+') {
        let spaced: Vec<u8> = encoded
            .iter()
            .map(|&byte| if byte == b'+' { b' ' } else { byte })
            .collect();
        return Cow::Owned(decode(&spaced).into_owned());
    }
    decode(encoded)
}
