//! Where a request comes from and where it was going, as a trusted proxy saw it.
//!
//! A head without an [`Origin`] was either sent by the client itself or by a proxy that is not believed: then
//! the connection tells all there is. Who is believed, and what: `citius-forwarded`.

use alloc::boxed::Box;
use core::net::SocketAddr;

/// What a proxy says in place of the connection; `None` where it says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Who asks.
    pub client: Option<Client>,
    /// How the client reached the first proxy.
    pub scheme: Option<Scheme>,
    /// The host that the client asked, without a port, an IPv6 address in its brackets.
    pub host: Option<Box<str>>,
    /// The port that the client asked.
    pub port: Option<u16>,
    /// What the proxy has taken off the front of the path, percent-encoded: begins with a slash and does not
    /// end with one, or is empty.
    pub prefix: Option<Box<str>>,
}

/// The client of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// The proxy does not tell (RFC 7239 §6: `unknown` and obfuscated identifiers).
    Hidden,
    /// An address; port 0 where none was said.
    Address(SocketAddr),
}

/// The scheme of a request's URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the schemes")]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// As it is spelled in a URI.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that a URI without one means.
    pub const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

impl Origin {
    /// The host that the client asked, and at which port.
    pub fn server(&self) -> (Option<&str>, Option<u16>) {
        let implied = self.host.is_some().then(|| {
            let scheme = self.scheme.unwrap_or(Scheme::Http);
            scheme.default_port()
        });
        (self.host.as_deref(), self.port.or(implied))
    }
}
