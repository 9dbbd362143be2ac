//! Why a request fails, and the exceptions of `citius.http.errors` for it.

use citius_h1::client::Fault;
use pyo3::prelude::*;

/// A reason, with the class of its exception.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    class: &'static str,
    message: String,
    /// How long it took.
    after_ms: Option<u64>,
    /// The rule that the server has broken, or what a proxy has done.
    reason: Option<&'static str>,
    /// The server has ended the connection in order.
    is_end: bool,
    /// Other requests had all connections until then.
    in_queue: bool,
}

/// What Python may say of a proxy.
const PROXY_REASONS: [&str; 3] = ["ProxyUnreachable", "ProxyClosed", "ProxyNoHttp"];

/// The classes that Python may name.
const CLASSES: [&str; 14] = [
    "ConnectError",
    "TlsError",
    "ProxyError",
    "AddressRefused",
    "ConnectTimeout",
    "PoolTimeout",
    "WriteTimeout",
    "ReadTimeout",
    "TotalTimeout",
    "ReadError",
    "WriteError",
    "RemoteProtocolError",
    "TooLarge",
    "ClientClosed",
];

impl Failure {
    #[cold]
    pub(crate) fn new(class: &'static str, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            after_ms: None,
            reason: None,
            is_end: false,
            in_queue: false,
        }
    }

    /// Connecting has taken too long.
    pub(crate) fn is_connect_timeout(&self) -> bool {
        self.class == "ConnectTimeout"
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// One whose class Python names.
    pub(crate) fn named(class: &str, message: String, reason: Option<&str>) -> Self {
        let known = CLASSES.iter().find(|known| **known == class);
        let mut failure = Self::new(known.unwrap_or(&"ConnectError"), message);
        failure.reason = PROXY_REASONS
            .into_iter()
            .find(|known| Some(*known) == reason);
        failure
    }

    /// The server has ended the connection in order.
    #[cold]
    pub(crate) fn end(message: impl Into<String>) -> Self {
        let mut failure = Self::new("ReadError", message);
        failure.is_end = true;
        failure
    }

    /// The request has waited for a connection that others had.
    #[cold]
    pub(crate) fn in_queue(mut self) -> Self {
        self.in_queue = true;
        self
    }

    #[cold]
    pub(crate) fn after(mut self, after_ms: u64) -> Self {
        self.after_ms = Some(after_ms);
        self
    }

    /// A rule of HTTP/1.1 that the server has broken, or a limit that its response exceeds.
    #[cold]
    pub(crate) fn of_h1(fault: Fault, body_bytes_max: u64) -> Self {
        let (text, spec) = (fault.text(), fault.spec());
        let mut failure = if fault == Fault::BodyTooLong {
            Self::new(
                "TooLarge",
                format!(
                    "the response has a body of more than {body_bytes_max} bytes, which is what the client takes"
                ),
            )
        } else if fault.is_size() {
            Self::new("TooLarge", format!("the response is too large: {text}"))
        } else if fault.is_end() {
            Self::end(format!("the server has ended the connection: {text}"))
        } else {
            Self::new(
                "RemoteProtocolError",
                format!("the response is no HTTP/1.1: {text} ({spec})"),
            )
        };
        failure.reason = Some(fault.name());
        failure
    }

    /// A rule of HTTP/2 that the server has broken, or a limit that its response exceeds.
    #[cold]
    pub(crate) fn of_h2(fault: citius_h2::client::Fault) -> Self {
        let (text, spec) = (fault.text, fault.spec);
        let failure = if fault.is_size() {
            Self::new("TooLarge", format!("the response is too large: {text}"))
        } else {
            Self::new(
                "RemoteProtocolError",
                format!("the response is no HTTP/2: {text} ({spec})"),
            )
        };
        failure.with_reason(fault.name)
    }

    pub(crate) fn with_reason(mut self, reason: &'static str) -> Self {
        self.reason = Some(reason);
        self
    }

    /// The exception.
    #[cold]
    pub(crate) fn error(&self, py: Python<'_>, origin: &str) -> PyErr {
        let make = || -> PyResult<PyErr> {
            let class = py.import("citius.http.errors")?.getattr(self.class)?;
            let error = class.call1((format!("{origin}: {}", self.message),))?;
            error.setattr("origin", origin)?;
            #[expect(clippy::cast_precision_loss, reason = "seconds with three decimals")]
            let after_s = self.after_ms.map(|ms| ms as f64 / 1000.0);
            error.setattr("after_s", after_s)?;
            error.setattr("reason", self.reason)?;
            if self.is_end {
                error.setattr("is_end", true)?;
            }
            if self.in_queue {
                error.setattr("in_queue", true)?;
            }
            Ok(PyErr::from_value(error))
        };
        make().unwrap_or_else(|error| error)
    }
}
