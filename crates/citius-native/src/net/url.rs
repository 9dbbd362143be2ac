//! The URL of a request: where to connect to, and what to ask for.

use super::error::{NetError, Result};
use super::stream::Target;
use super::tls::TlsRules;

/// A URL in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) target: Target,
    /// `Host`: with the port, unless it is the scheme's own.
    pub(crate) authority: String,
    /// What stands in the request line.
    pub(crate) path: String,
}

impl Url {
    /// Reads an absolute URL of http or https. A fragment is not part of a request, and a user's name is refused.
    pub(crate) fn parse(text: &str, rules: &TlsRules) -> Result<Self> {
        let wrong = |what: &str| NetError::misuse(format!("the URL {text:?} {what}"));
        if text.bytes().any(|byte| !byte.is_ascii_graphic()) {
            return Err(wrong(
                "has a space, a control character, or one beyond ASCII: percent-encode it",
            ));
        }
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| wrong("has no scheme: http:// or https:// was expected"))?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(wrong("has another scheme than http or https")),
        };
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let path_at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(path_at);
        if authority.contains('@') {
            return Err(wrong(
                "has a user's name: send an Authorization field instead",
            ));
        }
        let (host, port) =
            host_and_port(authority).ok_or_else(|| wrong("has no valid host and port"))?;
        let port = port.unwrap_or(if is_secure { 443 } else { 80 });
        Ok(Self {
            target: Target {
                host: host.to_owned(),
                port,
                tls: is_secure.then(|| rules.clone()),
            },
            authority: authority.to_owned(),
            path: if path.starts_with('/') {
                path.to_owned()
            } else {
                format!("/{path}")
            },
        })
    }
}

/// A host without its brackets, and the port if there is one.
fn host_and_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return None,
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_name) {
        return None;
    }
    match port {
        None | Some("") => Some((host, None)),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port: u16 = port.parse().ok()?;
            (port != 0).then_some((host, Some(port)))
        }
        Some(_) => None,
    }
}
