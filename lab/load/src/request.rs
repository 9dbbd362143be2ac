//! What is asked and what must come back: the URL, the requests of a mix, their expectations.

use std::path::Path;

use serde::Deserialize;

use crate::pace::Random;

/// `http[s]://host[:port][/path][?query]`, or one of another scheme, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Url {
    pub(crate) is_secure: bool,
    pub(crate) kind: Kind,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Host and port as the Host field says them.
    pub(crate) authority: String,
    pub(crate) target: String,
}

/// What a scheme stands for, in clear text and over TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Http,
    WebSocket,
    Rpc,
    WebTransport,
}

impl Url {
    /// Whether its scheme means QUIC.
    pub(crate) fn is_quic(&self) -> bool {
        match self.kind {
            Kind::Rpc => self.is_secure,
            Kind::WebTransport => true,
            Kind::Http | Kind::WebSocket => false,
        }
    }

    /// # Errors  A sentence that says what was expected and what came.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let fault =
            |what: &str| format!("{what}, expected http[s]://host[:port]/path, got {text:?}");
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| fault("a URL needs its scheme"))?;
        let (kind, is_secure) = match scheme {
            "http" => (Kind::Http, false),
            "https" => (Kind::Http, true),
            "ws" => (Kind::WebSocket, false),
            "wss" => (Kind::WebSocket, true),
            "rpc" => (Kind::Rpc, false),
            "quic" => (Kind::Rpc, true),
            "wt" => (Kind::WebTransport, true),
            _ => return Err(fault(&format!("cannot speak {scheme}"))),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, target) = match rest.find(['/', '?']) {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        };
        if authority.contains('@') {
            return Err(fault("user names are not supported"));
        }
        // The colon of a port stands behind the bracket of an IPv6 address, if there is one.
        let after_host = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[after_host..].find(':') {
            Some(at) => {
                let (host, port) = authority.split_at(after_host + at);
                (
                    host,
                    port[1..]
                        .parse()
                        .map_err(|_| fault("the port is not a number"))?,
                )
            }
            None => (authority, if is_secure { 443 } else { 80 }),
        };
        let host = host
            .strip_prefix('[')
            .and_then(|h| h.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() {
            return Err(fault("there is no host"));
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = check_target(format!("{slash}{target}"))?;
        Ok(Self {
            is_secure,
            kind,
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            target,
        })
    }
}

/// A request as its parts; a wire makes bytes of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) authority: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// HTTP/1.1: sent as one chunk instead of with a Content-Length.
    pub(crate) is_chunked: bool,
}

/// What a valid answer looks like. What is `None` is not checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Expectation {
    pub(crate) status: u16,
    /// Checked on every answer; equals the size of `body` where that is known.
    pub(crate) length: Option<u64>,
    /// Checked on a sample.
    pub(crate) body: Option<Vec<u8>>,
}

/// A request, its expectation, and how often it is drawn relative to the others.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) request: Request,
    pub(crate) expectation: Expectation,
    pub(crate) weight: u64,
    /// Whether its valid answers are counted apart, and have no latency.
    pub(crate) is_background: bool,
}

/// The requests of a run. Every request is drawn independently of the connection it goes to, so
/// that a fast one does not crowd out the others.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    pub(crate) entries: Vec<Entry>,
    weight_total: u64,
    /// Whether all have the same weight: then a draw looks at none of them.
    is_even: bool,
}

impl Mix {
    /// # Errors  There is no entry, or none that has a weight.
    pub(crate) fn new(entries: Vec<Entry>) -> Result<Self, String> {
        let weight_total = entries
            .iter()
            .try_fold(0_u64, |total, entry| total.checked_add(entry.weight));
        match weight_total {
            None | Some(0) => Err("a mix needs at least one request with a weight above 0".into()),
            Some(weight_total) => Ok(Self {
                is_even: entries.iter().all(|entry| entry.weight == 1),
                entries,
                weight_total,
            }),
        }
    }

    /// The index of the entry to ask next.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        if self.entries.len() == 1 {
            return 0;
        }
        let mut ticket = random.below(self.weight_total);
        if self.is_even {
            return usize::try_from(ticket).expect("there are fewer entries");
        }
        for (index, entry) in self.entries.iter().enumerate() {
            match ticket.checked_sub(entry.weight) {
                Some(rest) => ticket = rest,
                None => return index,
            }
        }
        unreachable!("tickets are below the sum of the weights")
    }

    /// Reads a mix from JSON: a list of objects with `weight`, `method`, `path`, `headers`,
    /// `body` or `body_file`, `chunked`, `background`, `expect_status`, `expect_length`, `expect_body` or
    /// `expect_body_file`. What an object leaves out is as in `base`; headers are added to its.
    /// Files are relative to `folder`.
    /// # Errors  A sentence naming the entry.
    pub(crate) fn read(json: &str, folder: &Path, base: &Entry) -> Result<Self, String> {
        let lines: Vec<MixLine> = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let entries = lines.into_iter().enumerate().map(|(index, line)| {
            line.entry(folder, base)
                .map_err(|error| format!("entry {index}: {error}"))
        });
        Self::new(entries.collect::<Result<_, _>>()?)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MixLine {
    weight: Option<u64>,
    method: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: serde_json::Map<String, serde_json::Value>,
    body: Option<String>,
    body_file: Option<String>,
    #[serde(default)]
    chunked: bool,
    #[serde(default)]
    background: bool,
    expect_status: Option<u16>,
    expect_length: Option<u64>,
    expect_body: Option<String>,
    expect_body_file: Option<String>,
}

impl MixLine {
    fn entry(self, folder: &Path, base: &Entry) -> Result<Entry, String> {
        let bytes = |text: Option<String>, file: Option<String>, names: &str| match (text, file) {
            (Some(_), Some(_)) => Err(format!("{names} exclude each other")),
            (Some(text), None) => Ok(Some(text.into_bytes())),
            (None, Some(file)) => read_file(&folder.join(file)).map(Some),
            (None, None) => Ok(None),
        };
        let mut request = base.request.clone();
        if let Some(method) = self.method {
            request.method = check_method(method)?;
        }
        if let Some(path) = self.path {
            request.target = check_target(path)?;
        }
        for (name, value) in self.headers {
            let value = value
                .as_str()
                .ok_or_else(|| format!("header {name} is not a string"))?;
            request.headers.push(check_header(&name, value)?);
        }
        if let Some(body) = bytes(self.body, self.body_file, "body and body_file")? {
            request.body = body;
        }
        request.is_chunked = self.chunked;
        let names = "expect_body and expect_body_file";
        let expected = bytes(self.expect_body, self.expect_body_file, names)?;
        let expectation = if expected.is_some() || self.expect_length.is_some() {
            let status = self.expect_status.unwrap_or(base.expectation.status);
            Expectation::new(status, self.expect_length, expected)?
        } else {
            let mut expectation = base.expectation.clone();
            expectation.status = self.expect_status.unwrap_or(expectation.status);
            expectation
        };
        Ok(Entry {
            request,
            expectation,
            weight: self.weight.unwrap_or(1),
            is_background: self.background,
        })
    }
}

impl Expectation {
    /// # Errors  The length is not that of the body.
    pub(crate) fn new(
        status: u16,
        length: Option<u64>,
        body: Option<Vec<u8>>,
    ) -> Result<Self, String> {
        let n_body = body.as_ref().map(|body| body.len() as u64);
        match (length, n_body) {
            (Some(length), Some(n_body)) if length != n_body => Err(format!(
                "the expected body has {n_body} bytes, the expected length is {length}"
            )),
            _ => Ok(Self {
                status,
                length: n_body.or(length),
                body,
            }),
        }
    }
}

/// # Errors  The file cannot be read; the message names it.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// A method is a token (RFC 9110 §9.1). CONNECT and TRACE mean nothing to a load generator.
pub(crate) fn check_method(method: String) -> Result<String, String> {
    let valid = !method.is_empty() && method.bytes().all(is_token);
    if !valid || matches!(method.as_str(), "CONNECT" | "TRACE") {
        return Err(format!("cannot send the method {method:?}"));
    }
    Ok(method)
}

/// # Errors  The target would break the request line.
pub(crate) fn check_target(target: String) -> Result<String, String> {
    if !target.starts_with('/') {
        return Err(format!("a path starts with /, got {target:?}"));
    }
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "a path has no spaces and only ASCII, percent-encode it: {target:?}"
        ));
    }
    Ok(target)
}

/// # Errors  The field would break the head or the framing.
pub(crate) fn check_header(name: &str, value: &str) -> Result<(String, String), String> {
    let (name, value) = (name.trim(), value.trim());
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(format!(
            "a header is \"Name: value\", the name came as {name:?}"
        ));
    }
    if value
        .bytes()
        .any(|byte| byte.is_ascii_control() && byte != b'\t')
    {
        return Err(format!(
            "header {name} has a control character in its value"
        ));
    }
    if name.eq_ignore_ascii_case("transfer-encoding") {
        return Err("bodies have a Content-Length, or in a mix \"chunked\": true".into());
    }
    Ok((name.to_owned(), value.to_owned()))
}

/// RFC 9110 §5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests;
