//! Heads of messages that a gateway passes on: a client's request for another server, and that server's response for the client.
//!
//! In: a [`Request`] and rules, or a reply. Out: fields without those of the connection (RFC 9110 §7.6.1), with `Via` and what says
//! where the request comes from; a target whose path cannot leave what the route is for. Tests: `tests/http/gateway/test_heads.py`.

use std::io::Write;
use std::net::IpAddr;

use citius_base::passing::{ClientRequest, asks_for_websocket, request_of};
use citius_base::support::latin;
use citius_forwarded::{
    is_of_connection, is_of_gateways, is_same_loosely, leaves_its_place, options,
};
use citius_http::fields::is_forbidden_trailer;
use citius_http::origin::Client;
use citius_http::{BodyLength, Fault, Fields, Head, Method};
use citius_route::Converter;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};
use smallvec::SmallVec;

use super::head::{Lines, Pairs};

/// Bytes that the fields of most requests do not exceed.
const FIELDS_BYTES: usize = 768;

/// How often a request may have passed this gateway; with more it goes round in a circle.
const PASSES_MAX: usize = 8;

/// The trailer section of a client's request for the server behind: what that server could take for a field of the gateway's, or for one of
/// the head, is left out.
pub(super) fn onward_trailers(trailers: &mut Pairs, head: &super::request::Fields<'_>) {
    trailers.retain(|(name, _)| {
        let is_in_head = || head.iter().any(|(other, _)| is_same_loosely(name, other));
        !is_of_connection(name) && !is_of_gateways(name) && !is_in_head()
    });
}

fn values<'a>(head: &'a Head, name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let fields = head.fields();
    fields
        .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// Appends a path parameter as the client has written it, or encoded so that it is the same one again.
fn append_param(request: &ClientRequest<'_>, at: usize, target: &mut Vec<u8>) {
    let value = request.captures.get(at).map_or(&[][..], Vec::as_slice);
    let is_rest = request
        .params
        .get(at)
        .is_some_and(|param| param.converter == Converter::Path);
    let path = request.head.path();
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
            let _ = write!(target, "%{byte:02X}");
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

/// A request that is not passed on: the status of the response, and why.
pub(super) type Refusal = (u16, &'static str);

const LEAVES: Refusal = (
    400,
    "a path that is passed on has no segments '.' and '..', encoded or not",
);

/// The head of a request for another server.
pub(super) struct Onward {
    pub(super) target: Vec<u8>,
    pub(super) fields: Lines,
}

/// An `HTTPError` of this status.
#[cold]
fn refusal(py: Python<'_>, (status, detail): Refusal) -> PyErr {
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
        request: &Bound<'py, PyAny>,
    ) -> PyResult<(Bound<'py, PyString>, Bound<'py, PyList>)> {
        let request = request_of(request)?.as_client();
        let Onward { target, fields } = self.onward(&request).map_err(|why| refusal(py, why))?;
        let list = PyList::empty(py);
        for (name, value) in fields.iter() {
            list.append((PyBytes::new(py, name), PyBytes::new(py, value)))?;
        }
        Ok((latin(py, &target), list))
    }

    /// Whether a request has content, or is to have.
    #[staticmethod]
    fn has_body(request: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(request_of(request)?.as_client().head.body != BodyLength::None)
    }
}

impl ForwardRules {
    pub(super) fn via(&self) -> &str {
        &self.via
    }

    /// The head for the server behind this one.
    pub(super) fn onward(&self, request: &ClientRequest<'_>) -> Result<Onward, Refusal> {
        let head = request.head;
        let target = self.target(request)?;
        let mut fields = Lines::with_capacity(FIELDS_BYTES);
        self.pass_on(head, &mut fields);
        self.say_where_from(request, &mut fields);
        let mut passes = 0;
        let mut via = Vec::new();
        for value in values(head, b"via") {
            passes += options(std::iter::once(value))
                .into_iter()
                .filter(|pass| {
                    let name = pass.split(|&byte| byte == b' ').nth(1);
                    name == Some(self.via.as_bytes())
                })
                .count();
            push_separated(&mut via, |via| via.extend_from_slice(value));
        }
        if passes >= PASSES_MAX {
            return Err((508, "the request goes round in a circle"));
        }
        push_separated(&mut via, |via| {
            push_pass(via, head.version.number(), &self.via);
        });
        fields.push(b"via", &via);
        Ok(Onward { target, fields })
    }

    fn target(&self, request: &ClientRequest<'_>) -> Result<Vec<u8>, Refusal> {
        let head = request.head;
        let mut target = Vec::with_capacity(head.path().len() + 64);
        if leaves_its_place(head.path()) {
            return Err(LEAVES);
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
                // What a handler has made of what its client says.
                if leaves_its_place(&target) {
                    return Err(LEAVES);
                }
            }
        }
        if head.query.is_some() {
            target.push(b'?');
            target.extend_from_slice(head.query());
        }
        Ok(target)
    }

    /// Appends the fields of a client that are for the server behind this one.
    fn pass_on(&self, head: &Head, fields: &mut Lines) {
        let named = options(values(head, b"connection"));
        let upgrades = asks_for_websocket(head);
        let limited = matches!(head.method, Method::Options | Method::Trace);
        for (name, value) in head.fields() {
            let is_left_out = name.starts_with(b":")
                || is_of_connection(name)
                || named.iter().any(|option| name.eq_ignore_ascii_case(option))
                || name.eq_ignore_ascii_case(b"via")
                || name.eq_ignore_ascii_case(b"host") && !self.keeps_host
                || name.eq_ignore_ascii_case(b"expect") && !head.expects_continue
                || is_of_gateways(name);
            if is_left_out {
                continue;
            }
            if limited && name.eq_ignore_ascii_case(b"max-forwards") {
                let left: Option<u64> = std::str::from_utf8(value)
                    .ok()
                    .and_then(|it| it.parse().ok());
                let left = left.unwrap_or(0).saturating_sub(1).to_string();
                fields.push(name, left.as_bytes());
                continue;
            }
            fields.push(name, value);
        }
        let takes_trailers = options(values(head, b"te"))
            .into_iter()
            .any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
        if takes_trailers && !upgrades {
            fields.push(b"te", b"trailers");
        }
        if upgrades {
            fields.push(b"upgrade", b"websocket");
        }
    }

    /// Says who asks, how and for which host: what trusted proxies say, as it was understood, and what this server has seen.
    fn say_where_from(&self, request: &ClientRequest<'_>, fields: &mut Lines) {
        let head = request.head;
        let origin = head.origin.as_deref();
        let peer = request.peer.address().map(|address| address.ip());
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
        let mut text = Vec::with_capacity(48);
        if self.x_forwarded {
            for hop in hops.clone() {
                push_separated(&mut text, |text| match hop {
                    Some(ip) => push_ip(text, ip),
                    None => text.extend_from_slice(b"unknown"),
                });
            }
            fields.push(b"x-forwarded-for", &text);
            fields.push(b"x-forwarded-proto", scheme.as_bytes());
            fields.push(b"x-forwarded-host", host);
            if let Some(prefix) = origin.and_then(|origin| origin.prefix.as_deref()) {
                fields.push(b"x-forwarded-prefix", prefix.as_bytes());
            }
        }
        if self.forwarded {
            text.clear();
            for hop in hops {
                push_separated(&mut text, |text| {
                    let _ = match hop {
                        Some(IpAddr::V6(ip)) => write!(text, "for=\"[{ip}]\""),
                        Some(IpAddr::V4(ip)) => write!(text, "for={ip}"),
                        None => write!(text, "for=unknown"),
                    };
                });
            }
            let _ = write!(text, ";proto={scheme}");
            if !host.is_empty() && host.iter().all(|byte| !matches!(byte, b'"' | b'\\')) {
                text.extend_from_slice(b";host=\"");
                text.extend_from_slice(host);
                text.push(b'"');
            }
            fields.push(b"forwarded", &text);
        }
    }
}

/// Appends what a gateway says in `Via` of a message with this version.
fn push_pass(text: &mut Vec<u8>, version: &str, via: &str) {
    text.extend_from_slice(version.as_bytes());
    text.push(b' ');
    text.extend_from_slice(via.as_bytes());
}

/// Appends an element of a list.
fn push_separated(text: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>)) {
    if !text.is_empty() {
        text.extend_from_slice(b", ");
    }
    push(text);
}

/// Appends an address. Those of IPv4 are written without the formatting machinery, for most requests have one.
fn push_ip(text: &mut Vec<u8>, ip: IpAddr) {
    let IpAddr::V4(ip) = ip else {
        let _ = write!(text, "{ip}");
        return;
    };
    for (at, octet) in ip.octets().into_iter().enumerate() {
        if at > 0 {
            text.push(b'.');
        }
        if octet >= 100 {
            text.push(b'0' + octet / 100);
        }
        if octet >= 10 {
            text.push(b'0' + octet / 10 % 10);
        }
        text.push(b'0' + octet % 10);
    }
}

/// Calls `take` with the fields of a response for the client.
fn for_client(
    fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
    version: &str,
    via: &str,
    mut take: impl FnMut(&[u8], &[u8]),
) {
    let fields: SmallVec<[_; 16]> = fields.collect();
    let connection = fields
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"));
    let named = options(connection.map(|(_, value)| *value));
    let mut vias = Vec::new();
    for (name, value) in fields {
        let is_length = name.eq_ignore_ascii_case(b"content-length");
        let is_named = named.iter().any(|option| name.eq_ignore_ascii_case(option));
        if !is_length && (is_named || is_of_connection(name))
            // It speaks of the other server's own addresses (RFC 7838 §2).
            || name.eq_ignore_ascii_case(b"alt-svc")
        {
            continue;
        }
        if name.eq_ignore_ascii_case(b"via") {
            push_separated(&mut vias, |vias| vias.extend_from_slice(value));
            continue;
        }
        take(name, value);
    }
    let version = version.strip_prefix("HTTP/").unwrap_or(version);
    push_separated(&mut vias, |vias| push_pass(vias, version, via));
    take(b"via", &vias);
}

/// The same as `str` for Python.
pub(crate) fn response_list<'py>(
    py: Python<'py>,
    fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
    version: &str,
    via: &str,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    let mut outcome = Ok(());
    for_client(fields, version, via, |name, value| {
        let pair = (latin(py, &name.to_ascii_lowercase()), latin(py, value));
        if outcome.is_ok() {
            outcome = list.append(pair);
        }
    });
    outcome.map(|()| list)
}

/// The same as they are sent.
///
/// # Errors
/// One of them cannot be sent.
pub(crate) fn response_fields(
    fields: &mut dyn Iterator<Item = (&[u8], &[u8])>,
    version: &str,
    via: &str,
) -> Result<Fields, Fault> {
    let mut sent = Fields::default();
    let mut outcome = Ok(());
    for_client(fields, version, via, |name, value| {
        if outcome.is_ok() {
            outcome = sent.push(name, value);
        }
    });
    outcome.map(|()| sent)
}

/// The fields of an informational response for the client, of which one that cannot be sent is left out.
pub(crate) fn interim_fields(pairs: &Pairs) -> Fields {
    let mut fields = Fields::default();
    let connection = pairs
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case(b"connection"));
    let named = options(connection.map(|(_, value)| value.as_slice()));
    for (name, value) in pairs {
        let is_left_out = is_of_connection(name)
            || named.iter().any(|option| name.eq_ignore_ascii_case(option))
            || name.eq_ignore_ascii_case(b"alt-svc");
        if !is_left_out {
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
