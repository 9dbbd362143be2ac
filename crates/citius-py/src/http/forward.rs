//! Heads of messages that a gateway passes on: a client's request for another server, and that server's response for the client.
//!
//! In: a [`Request`] and rules, or a reply. Out: fields without those of the connection (RFC 9110 §7.6.1), with `Via` and what says
//! where the request comes from; a target whose path cannot leave what the route is for. Tests: `tests/http/gateway/test_heads.py`.

use std::net::IpAddr;

use citius_http::fields::is_forbidden_trailer;
use citius_http::origin::Client;
use citius_http::{BodyLength, Fields, Head, Method};
use citius_route::Converter;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::head::Pairs;
use crate::passing::asks_for_websocket;
use crate::request::{Request, latin};

/// Fields that are for one connection, whatever `connection` says.
const OF_CONNECTION: [&[u8]; 11] = [
    b"connection",
    b"keep-alive",
    b"proxy-connection",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-authentication-info",
    b"te",
    b"transfer-encoding",
    b"upgrade",
    b"http2-settings",
    b"content-length",
];

/// Fields in which a gateway says where a request comes from. What a client says in them is its own word.
const OF_GATEWAYS: [&[u8]; 10] = [
    b"forwarded",
    b"x-forwarded-for",
    b"x-forwarded-proto",
    b"x-forwarded-host",
    b"x-forwarded-port",
    b"x-forwarded-prefix",
    b"x-forwarded-by",
    b"x-forwarded-server",
    b"x-forwarded-scheme",
    b"x-real-ip",
];

/// How often a request may have passed this gateway; with more it goes round in a circle.
const PASSES_MAX: usize = 8;

fn is_one_of(names: &[&[u8]], name: &[u8]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// The same for servers that take `_` for `-`, as CGI does.
fn is_one_of_loosely(names: &[&[u8]], name: &[u8]) -> bool {
    let same = |(a, b): (&u8, &u8)| {
        let dashed = if *a == b'_' { b'-' } else { *a };
        dashed.eq_ignore_ascii_case(b)
    };
    names
        .iter()
        .any(|other| name.len() == other.len() && name.iter().zip(*other).all(same))
}

/// What `connection` names.
fn options<'a>(values: impl Iterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let options = values.flat_map(|value| value.split(|&byte| byte == b','));
    options
        .map(<[u8]>::trim_ascii)
        .filter(|option| !option.is_empty())
        .collect()
}

fn values<'a>(head: &'a Head, name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let fields = head.fields();
    fields
        .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

fn joined(values: impl Iterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut all = Vec::new();
    for value in values {
        if !all.is_empty() {
            all.extend_from_slice(b", ");
        }
        all.extend_from_slice(value.as_ref());
    }
    all
}

/// Whether a server could read a path below `/a/` as one outside of it: with a segment `..` or `.`, encoded or behind an encoded slash.
fn leaves_its_place(path: &[u8]) -> bool {
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = match after {
            [high, low, ..] if byte == b'%' => match (high, low.to_ascii_lowercase()) {
                (b'2', b'e') => Some(b'.'),
                (b'2', b'f') | (b'5', b'c') => Some(b'/'),
                _ => None,
            },
            _ => None,
        };
        rest = if escaped.is_some() {
            &after[2..]
        } else {
            after
        };
        let byte = escaped.unwrap_or(byte);
        decoded.push(if byte == b'\\' { b'/' } else { byte });
    }
    // Some servers cut parameters off a segment before they look at it (`..;a`).
    decoded.split(|&byte| byte == b'/').any(|segment| {
        let name = segment.split(|&byte| byte == b';').next();
        matches!(name, Some(b"." | b".."))
    })
}

/// Appends a path parameter as the client has written it, or encoded so that it is the same one again.
fn append_param(request: &Request, at: usize, target: &mut Vec<u8>) {
    let value = request.captures().get(at).map_or(&[][..], Vec::as_slice);
    let route = request.route();
    let is_rest = route
        .and_then(|route| route.params.get(at))
        .is_some_and(|param| param.converter == Converter::Path);
    let path = request.head().path();
    if is_rest {
        // It is the end of the path. Which of its slashes were encoded is not in the value.
        let starts = (0..=path.len()).filter(|&at| at == 0 || path[at - 1] == b'/');
        let found = starts
            .map(|at| &path[at..])
            .find(|rest| *citius_route::decode(rest) == *value);
        if let Some(rest) = found {
            return target.extend_from_slice(rest);
        }
    }
    for &byte in value {
        if byte.is_ascii_alphanumeric()
            || b"-._~!$&'()*+,;=:@".contains(&byte)
            || is_rest && byte == b'/'
        {
            target.push(byte);
        } else {
            target.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
}

/// A part of a target.
#[derive(FromPyObject)]
enum TargetPart {
    /// The path parameter at this place, as it came.
    Param(usize),
    Text(String),
}

/// How heads of requests are made for other servers.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct ForwardRules {
    /// What this gateway is called in `Via`.
    via: String,
    /// What the path is made of; `None`: that of the request.
    path: Option<Vec<TargetPart>>,
    x_forwarded: bool,
    forwarded: bool,
    keeps_host: bool,
}

/// An `HTTPError` of this status.
#[cold]
fn refusal(py: Python<'_>, status: u16, detail: &str) -> PyErr {
    let make = || -> PyResult<PyErr> {
        let class = py.import("citius.errors")?.getattr("HTTPError")?;
        Ok(PyErr::from_value(class.call1((status, detail))?))
    };
    make().unwrap_or_else(|error| error)
}

#[pymethods]
impl ForwardRules {
    #[new]
    #[pyo3(signature = (*, via, path = None, x_forwarded = true, forwarded = false, keeps_host = false))]
    fn new(
        via: String,
        path: Option<Vec<TargetPart>>,
        x_forwarded: bool,
        forwarded: bool,
        keeps_host: bool,
    ) -> Self {
        Self {
            via,
            path,
            x_forwarded,
            forwarded,
            keeps_host,
        }
    }

    /// Target and fields of a request for another server.
    ///
    /// # Errors
    /// An `HTTPError`: the request is not to be passed on.
    fn head<'py>(
        &self,
        py: Python<'py>,
        request: &Bound<'py, Request>,
    ) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyList>)> {
        let request = request.get();
        let head = request.head();
        let target = self.target(py, request)?;
        let via = joined(values(head, b"via"));
        let passes = options(std::iter::once(&*via));
        let passes = passes.into_iter().filter(|pass| {
            let name = pass.split(|&byte| byte == b' ').nth(1);
            name == Some(self.via.as_bytes())
        });
        if passes.count() >= PASSES_MAX {
            return Err(refusal(py, 508, "the request goes round in a circle"));
        }
        let mut fields = Pairs::with_capacity(head.fields.len() + 6);
        self.pass_on(head, &mut fields);
        self.say_where_from(request, &mut fields);
        let version = head.version.number();
        let own = format!("{version} {}", self.via);
        let via = joined(
            [&*via, own.as_bytes()]
                .into_iter()
                .filter(|it| !it.is_empty()),
        );
        fields.push((b"via".to_vec(), via));
        let list = PyList::empty(py);
        for (name, value) in fields {
            list.append((PyBytes::new(py, &name), PyBytes::new(py, &value)))?;
        }
        Ok((target, list))
    }

    /// Whether a request has content, or is to have.
    #[staticmethod]
    fn has_body(request: &Bound<'_, Request>) -> bool {
        request.get().head().body != BodyLength::None
    }
}

impl ForwardRules {
    fn target<'py>(&self, py: Python<'py>, request: &Request) -> PyResult<Bound<'py, PyString>> {
        let head = request.head();
        let mut target = Vec::with_capacity(head.path().len() + 64);
        if leaves_its_place(head.path()) {
            return Err(refusal(
                py,
                400,
                "a path that is passed on has no segments '.' and '..', encoded or not",
            ));
        }
        match &self.path {
            None => target.extend_from_slice(head.path()),
            Some(parts) => {
                for part in parts {
                    match part {
                        TargetPart::Text(text) => target.extend_from_slice(text.as_bytes()),
                        TargetPart::Param(at) => append_param(request, *at, &mut target),
                    }
                }
            }
        }
        if head.query.is_some() {
            target.push(b'?');
            target.extend_from_slice(head.query());
        }
        Ok(latin(py, &target))
    }

    /// Appends the fields of a client that are for the server behind this one.
    fn pass_on(&self, head: &Head, fields: &mut Pairs) {
        let named = options(values(head, b"connection"));
        let upgrades = asks_for_websocket(head);
        let limited = matches!(head.method, Method::Options | Method::Trace);
        for (name, value) in head.fields() {
            let is_left_out = name.starts_with(b":")
                || is_one_of(&OF_CONNECTION, name)
                || named.iter().any(|option| name.eq_ignore_ascii_case(option))
                || name.eq_ignore_ascii_case(b"via")
                || name.eq_ignore_ascii_case(b"host") && !self.keeps_host
                || name.eq_ignore_ascii_case(b"expect") && !head.expects_continue
                || is_one_of_loosely(&OF_GATEWAYS, name);
            if is_left_out {
                continue;
            }
            if limited && name.eq_ignore_ascii_case(b"max-forwards") {
                let left: Option<u64> = std::str::from_utf8(value)
                    .ok()
                    .and_then(|it| it.parse().ok());
                let left = left.unwrap_or(0).saturating_sub(1).to_string();
                fields.push((name.to_vec(), left.into_bytes()));
                continue;
            }
            fields.push((name.to_vec(), value.to_vec()));
        }
        let takes_trailers = options(values(head, b"te"))
            .into_iter()
            .any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
        if takes_trailers && !upgrades {
            fields.push((b"te".to_vec(), b"trailers".to_vec()));
        }
        if upgrades {
            fields.push((b"upgrade".to_vec(), b"websocket".to_vec()));
        }
    }

    /// Says who asks, how and for which host: what trusted proxies say, as it was understood, and what this server has seen.
    fn say_where_from(&self, request: &Request, fields: &mut Pairs) {
        let head = request.head();
        let origin = head.origin.as_deref();
        let peer = request.peer().address().map(|address| address.ip());
        let client = origin
            .and_then(|origin| origin.client)
            .map(|client| match client {
                Client::Address(address) => Some(address.ip()),
                Client::Hidden => None,
            });
        let hops = client.into_iter().chain([peer]);
        let scheme = head.scheme().name();
        let host = head.field(b"host").unwrap_or_default();
        let told = origin.and_then(|origin| {
            let (host, port) = (origin.host.as_deref()?, origin.port);
            Some(match port {
                Some(port) if port != head.scheme().default_port() => format!("{host}:{port}"),
                _ => host.to_owned(),
            })
        });
        let host = told.as_deref().map_or(host, str::as_bytes);
        if self.x_forwarded {
            let hops = hops
                .clone()
                .map(|hop| hop.map_or_else(|| "unknown".into(), |ip| ip.to_string()));
            fields.push((b"x-forwarded-for".to_vec(), joined(hops)));
            fields.push((b"x-forwarded-proto".to_vec(), scheme.into()));
            fields.push((b"x-forwarded-host".to_vec(), host.to_vec()));
            if let Some(prefix) = origin.and_then(|origin| origin.prefix.as_deref()) {
                fields.push((b"x-forwarded-prefix".to_vec(), prefix.into()));
            }
        }
        if self.forwarded {
            let nodes = hops.map(|hop| match hop {
                Some(IpAddr::V6(ip)) => format!("for=\"[{ip}]\""),
                Some(IpAddr::V4(ip)) => format!("for={ip}"),
                None => "for=unknown".into(),
            });
            let mut elements = joined(nodes);
            elements.extend_from_slice(format!(";proto={scheme}").as_bytes());
            if !host.is_empty() && host.iter().all(|byte| !matches!(byte, b'"' | b'\\')) {
                elements.extend_from_slice(b";host=\"");
                elements.extend_from_slice(host);
                elements.push(b'"');
            }
            fields.push((b"forwarded".to_vec(), elements));
        }
    }
}

/// The fields of a response for the client.
pub(crate) fn response_fields<'py>(
    py: Python<'py>,
    fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
    version: &str,
    via: &str,
) -> PyResult<Bound<'py, PyList>> {
    let fields: Vec<_> = fields.collect();
    let connection = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"));
    let named = options(connection.map(|(_, value)| *value));
    let list = PyList::empty(py);
    let mut vias = Vec::new();
    for (name, value) in &fields {
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        let is_named = named.iter().any(|option| name.eq_ignore_ascii_case(option));
        if !is_length && (is_named || is_one_of(&OF_CONNECTION, name))
            // It speaks of the other server's own addresses (RFC 7838 §2).
            || name.eq_ignore_ascii_case(b"alt-svc")
        {
            continue;
        }
        if name.eq_ignore_ascii_case(b"via") {
            vias.push(value.to_vec());
            continue;
        }
        list.append((latin(py, &name.to_ascii_lowercase()), latin(py, value)))?;
    }
    let version = version.strip_prefix("HTTP/").unwrap_or(version);
    vias.push(format!("{version} {via}").into_bytes());
    list.append(("via", latin(py, &joined(vias.into_iter()))))?;
    Ok(list)
}

/// The fields of an informational response for the client, of which one that cannot be sent is left out.
pub(crate) fn interim_fields(pairs: &Pairs) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in pairs {
        if !is_one_of(&OF_CONNECTION, name) {
            let _ = fields.push(name, value);
        }
    }
    fields
}

/// The trailer section of a response for the client.
pub(crate) fn client_trailers(pairs: &Pairs) -> Fields {
    let mut fields = Fields::default();
    for (name, value) in pairs {
        if !is_forbidden_trailer(name) {
            let _ = fields.push(name, value);
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_leaves_its_place_is_seen_however_it_is_written() {
        for bad in [
            &b"/v1/../admin"[..],
            b"/v1/%2e%2E/admin",
            b"/v1/.%2e/x",
            b"/v1/..%2fadmin",
            b"/v1/a%5c..%5cadmin",
            b"/v1/..\\admin",
            b"/v1/./x",
            b"/v1/..",
            b"/v1/..;a=b/admin",
        ] {
            assert!(leaves_its_place(bad), "{}", String::from_utf8_lossy(bad));
        }
        for good in [
            &b"/v1/a..b/c"[..],
            b"/v1/...",
            b"/v1/a.b/%2Ex",
            b"/",
            b"/v1//x",
            b"/%",
        ] {
            assert!(!leaves_its_place(good), "{}", String::from_utf8_lossy(good));
        }
    }

    #[test]
    fn names_are_told_apart_as_servers_behind_do() {
        assert!(is_one_of_loosely(&OF_GATEWAYS, b"X_Forwarded-For"));
        assert!(is_one_of_loosely(&OF_GATEWAYS, b"x-real-ip"));
        assert!(!is_one_of_loosely(&OF_GATEWAYS, b"x-real-ipx"));
        assert_eq!(
            options([&b"close, X-a ,,"[..], b"te"].into_iter()),
            [&b"close"[..], b"X-a", b"te"]
        );
    }
}
