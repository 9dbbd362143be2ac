//! Keyword arguments of `Reactor(…)` in, validated options of `citius-reactor` out. Tests: `tests/unit/`, `tests/server/`.

use citius_http::coding::Coding;
use citius_http::{Fields, Limits};
use citius_reactor::{
    CompressionLevels, CompressionPolicy, ForwardedNames, Network, Options, Protocols, Proxies,
};
use citius_static::{Mount, MountOptions, Mounts};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::balancer::Balancer;
use crate::observe::Observer;
use crate::tls::Tls;

/// The keyword arguments.
pub(crate) struct Settings {
    limits: Option<Py<PyAny>>,
    server_header: Option<String>,
    date_header: bool,
    headers: Vec<(String, String)>,
    pub(crate) event_loop: Option<Py<PyAny>>,
    pub(crate) make_loop: Option<Py<PyAny>>,
    observer: Option<Py<Observer>>,
    pub(crate) log: Option<Py<PyAny>>,
    mounts: Vec<Py<PyAny>>,
    compress: Vec<(String, Option<u8>)>,
    compress_types: Vec<String>,
    trusted: Vec<String>,
    forwarded: Vec<String>,
    http: String,
    h2c_upgrade: bool,
    pub(crate) tls: Option<Py<Tls>>,
    pub(crate) makes_room: bool,
    pub(crate) on_memory: Option<Py<PyAny>>,
    pub(crate) host: Option<Py<PyAny>>,
    pub(crate) balancer: Option<Py<Balancer>>,
}

impl Settings {
    /// Takes all of `keywords`.
    ///
    /// # Errors
    /// `TypeError` for one that there is not, or that is of another type.
    pub(crate) fn of(keywords: &Bound<'_, PyDict>) -> PyResult<Self> {
        let settings = Self {
            limits: take(keywords, "limits", None)?,
            server_header: take(keywords, "server_header", Some("citius".to_owned()))?,
            date_header: take(keywords, "date_header", true)?,
            headers: take(keywords, "headers", Vec::new())?,
            event_loop: take(keywords, "loop", None)?,
            make_loop: take(keywords, "make_loop", None)?,
            observer: take(keywords, "observer", None)?,
            log: take(keywords, "log", None)?,
            mounts: take(keywords, "mounts", Vec::new())?,
            compress: take(keywords, "compress", Vec::new())?,
            compress_types: take(keywords, "compress_types", Vec::new())?,
            trusted: take(keywords, "trusted", Vec::new())?,
            forwarded: take(keywords, "forwarded", Vec::new())?,
            http: take(keywords, "http", "auto".to_owned())?,
            h2c_upgrade: take(keywords, "h2c_upgrade", true)?,
            tls: take(keywords, "tls", None)?,
            makes_room: take(keywords, "makes_room", false)?,
            on_memory: take(keywords, "on_memory", None)?,
            host: take(keywords, "host", None)?,
            balancer: take(keywords, "balancer", None)?,
        };
        match keywords.keys().iter().next() {
            None => Ok(settings),
            Some(unknown) => Err(PyTypeError::new_err(format!(
                "Reactor() got an unexpected keyword argument {unknown:?}"
            ))),
        }
    }

    pub(crate) fn limits(&self, py: Python<'_>) -> PyResult<Limits> {
        limits_from(self.limits.as_ref().map(|limits| limits.bind(py)))
    }

    pub(crate) fn mounts(&self, py: Python<'_>) -> PyResult<Mounts> {
        let mounts = self.mounts.iter().map(|mount| mount_from(mount.bind(py)));
        Ok(Mounts::new(mounts.collect::<PyResult<_>>()?))
    }

    /// The observer of every request, which counts under `labels`.
    pub(crate) fn observer(
        &self,
        labels: (&[String], &[u16]),
    ) -> PyResult<Option<Box<citius_observe::Observer>>> {
        let observer = self.observer.as_ref();
        observer
            .map(|observer| observer.get().start(labels))
            .transpose()
    }

    pub(crate) fn options(
        self,
        limits: Limits,
        observer: Option<Box<citius_observe::Observer>>,
    ) -> PyResult<Options> {
        Ok(Options {
            limits,
            server: server_from(self.server_header)?,
            date: self.date_header,
            default_fields: default_response_headers_from(self.headers)?,
            observer,
            compression: compression_from(self.compress, self.compress_types)?,
            proxies: proxies_from(self.trusted, self.forwarded)?,
            protocols: protocols_from(&self.http, self.h2c_upgrade)?,
        })
    }
}

fn take<'py, T>(keywords: &Bound<'py, PyDict>, name: &str, default: T) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let Some(value) = keywords.get_item(name)? else {
        return Ok(default);
    };
    keywords.del_item(name)?;
    value.extract::<T>().map_err(Into::into)
}

/// Names and defaults of all limits.
pub(crate) fn limit_defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (defaults, values) = (PyDict::new(py), Limits::default());
    for name in Limits::NAMES {
        defaults.set_item(name, values.value_of(name))?;
    }
    Ok(defaults)
}

fn limits_from(overrides: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    let Some(overrides) = overrides else {
        return Ok(limits);
    };
    // An operator who sets this one alone means all bodies.
    if let Ok(bytes_max) = overrides.get_item("body_bytes_max") {
        limits.body_streamed_bytes_max = bytes_max.extract()?;
    }
    for item in overrides.call_method0("items")?.try_iter()? {
        let (name, value): (String, u64) = item?.extract()?;
        limits.set(&name, value).ok_or_else(|| {
            PyValueError::new_err(if Limits::NAMES.contains(&name.as_str()) {
                format!("limit {name} is too large: {value}")
            } else {
                format!(
                    "there is no limit {name:?}; the limits are {}",
                    Limits::NAMES.join(", ")
                )
            })
        })?;
    }
    Ok(limits)
}

/// What is compressed; nothing without a coding.
fn compression_from(
    wanted: Vec<(String, Option<u8>)>,
    types: Vec<String>,
) -> PyResult<Option<CompressionPolicy>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let (mut codings, mut levels) = (Vec::new(), CompressionLevels::default());
    for (name, level) in wanted {
        let coding = coding_from(&name)?;
        codings.push(coding);
        if let Some(level) = level {
            levels.set(coding, level);
        }
    }
    Ok(Some(CompressionPolicy {
        codings,
        levels,
        types,
    }))
}

/// A coding by the name that HTTP has for it.
pub(crate) fn coding_from(name: &str) -> PyResult<Coding> {
    Coding::from_token(name.as_bytes()).ok_or_else(|| {
        PyValueError::new_err(format!(
            "expected the coding br, zstd or gzip, got {name:?}"
        ))
    })
}

/// Which versions of HTTP are spoken.
pub(crate) fn protocols_from(http: &str, upgrade: bool) -> PyResult<Protocols> {
    let (http1, http2) = match http {
        "auto" => (true, true),
        "1" => (true, false),
        "2" => (false, true),
        _ => {
            return Err(PyValueError::new_err(format!(
                "http: expected auto, 1 or 2, got {http:?}"
            )));
        }
    };
    Ok(Protocols {
        http1,
        http2,
        upgrade,
    })
}

/// Which proxies are trusted, and which of their fields.
fn proxies_from(trusted: Vec<String>, forwarded: Vec<String>) -> PyResult<Proxies> {
    let mut proxies = Proxies::default();
    for text in trusted {
        let network = Network::parse(&text).ok_or_else(|| {
            PyValueError::new_err(format!(
                "expected an address, a network such as 10.0.0.0/8, unix or *, got {text:?}"
            ))
        })?;
        proxies.networks.push(network);
    }
    for name in forwarded {
        if !proxies.names.add(&name.to_ascii_lowercase()) {
            return Err(PyValueError::new_err(format!(
                "{name:?} is no header of proxies; there are {}",
                ForwardedNames::ALL.join(", ")
            )));
        }
    }
    Ok(proxies)
}

/// A static mount of what has the attributes of `citius.web.routing.static.Mount`.
pub(crate) fn mount_from(mount: &Bound<'_, PyAny>) -> PyResult<Mount> {
    let options = MountOptions {
        prefix: mount.getattr("prefix")?.extract()?,
        directory: mount.getattr("directory")?.extract()?,
        index: mount.getattr("index")?.extract()?,
        cache_control: mount.getattr("cache_control")?.extract()?,
        dotfiles: mount.getattr("dotfiles")?.extract()?,
        symlinks: mount.getattr("symlinks")?.extract()?,
        precompressed: mount.getattr("precompressed")?.extract()?,
        falls_through: mount.getattr("falls_through")?.extract()?,
    };
    Mount::new(options).map_err(PyValueError::new_err)
}

/// The value of the `server` field.
fn server_from(name: Option<String>) -> PyResult<Option<String>> {
    match &name {
        Some(text) if !citius_http::fields::is_value(text.as_bytes()) => Err(
            PyValueError::new_err("server_header has a control character"),
        ),
        _ => Ok(name),
    }
}

/// Fields of every response; what frames a message or is about the connection is not among them.
fn default_response_headers_from(headers: Vec<(String, String)>) -> PyResult<Fields> {
    let mut fields = Fields::default();
    for (name, value) in headers {
        let before = fields.lines().len();
        fields
            .push(name.as_bytes(), value.as_bytes())
            .map_err(|fault| PyValueError::new_err(format!("{name}: {}", fault.text())))?;
        if fields.lines().len() == before {
            return Err(PyValueError::new_err(format!(
                "{name} is for the server to say, as each answer needs it"
            )));
        }
    }
    Ok(fields)
}
