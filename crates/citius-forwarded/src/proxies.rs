//! Whom to believe, what, and what that makes of a request.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::net::SocketAddr;

use citius_http::origin::{Client, Scheme};
use citius_http::{Head, Origin};

use crate::list::{Hop, elements};
use crate::network::Network;
use crate::node;

/// The fields that are believed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a set of seven names")]
pub struct Names {
    /// `X-Forwarded-For`: the client.
    pub x_for: bool,
    /// `X-Forwarded-Proto`: the scheme.
    pub x_proto: bool,
    /// `X-Forwarded-Host`: the host, and maybe the port, in place of `Host`.
    pub x_host: bool,
    /// `X-Forwarded-Port`: the port.
    pub x_port: bool,
    /// `X-Forwarded-Prefix`: where the application is mounted.
    pub x_prefix: bool,
    /// `Forwarded`: client and scheme.
    pub forwarded: bool,
    /// `host=` of `Forwarded`; with a name of its own, because many proxies pass on a `Forwarded` that the client
    /// made up.
    pub forwarded_host: bool,
}

impl Names {
    /// All names there are.
    pub const ALL: [&'static str; 7] = [
        "forwarded",
        "forwarded-host",
        "x-forwarded-for",
        "x-forwarded-proto",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-prefix",
    ];

    /// Adds a name; `false` if it is none of [`ALL`](Self::ALL).
    pub fn add(&mut self, name: &str) -> bool {
        let place = match name.as_bytes() {
            b"forwarded" => &mut self.forwarded,
            b"forwarded-host" => &mut self.forwarded_host,
            b"x-forwarded-for" => &mut self.x_for,
            b"x-forwarded-proto" => &mut self.x_proto,
            b"x-forwarded-host" => &mut self.x_host,
            b"x-forwarded-port" => &mut self.x_port,
            b"x-forwarded-prefix" => &mut self.x_prefix,
            _ => return false,
        };
        *place = true;
        true
    }

    /// Those of these names that `head` has.
    fn among(self, head: &Head) -> Self {
        let mut found = Self::default();
        for field in &head.fields {
            self.note(head.slice(field.name), &mut found);
        }
        found
    }

    fn note(self, name: &[u8], found: &mut Self) {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        match name.len() {
            9 => found.forwarded |= (self.forwarded || self.forwarded_host) && is(b"forwarded"),
            15 => found.x_for |= self.x_for && is(b"x-forwarded-for"),
            16 if is(b"x-forwarded-host") => found.x_host |= self.x_host,
            16 => found.x_port |= self.x_port && is(b"x-forwarded-port"),
            17 => found.x_proto |= self.x_proto && is(b"x-forwarded-proto"),
            18 => found.x_prefix |= self.x_prefix && is(b"x-forwarded-prefix"),
            _ => {}
        }
    }
}

/// Whom a server believes, and what.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    /// Trusted peers, and hops behind them.
    pub networks: Vec<Network>,
    /// What they are believed.
    pub names: Names,
}

impl Proxies {
    /// Whether this peer (`None`: a Unix socket) speaks for its clients.
    pub fn trusts(&self, peer: Option<SocketAddr>) -> bool {
        self.networks.iter().any(|network| network.has(peer))
    }

    /// Takes over what `head`, sent by a trusted peer, says of its origin; a host also replaces its `Host`.
    #[inline]
    pub fn apply(&self, head: &mut Head) {
        // Few fields pass the look at the length of their names, and few requests have such a field.
        let mut names = head.fields.iter().map(|field| field.name);
        if names.any(|name| matches!(name.end.wrapping_sub(name.start), 9 | 15..=18)) {
            self.read_any(head);
        }
    }

    #[inline(never)]
    fn read_any(&self, head: &mut Head) {
        let names = self.names.among(head);
        if names != Names::default() {
            self.read(names, head);
        }
    }

    #[cold]
    fn read(&self, names: Names, head: &mut Head) {
        let x_names = Names {
            forwarded: false,
            ..names
        };
        // Nearly every proxy writes X-Forwarded-*, and passes on a Forwarded that the client made up.
        let origin = if x_names == Names::default() {
            self.read_forwarded(head)
        } else {
            Some(self.read_x_forwarded(names, head))
        };
        let Some(origin) = origin.filter(|origin| *origin != Origin::default()) else {
            return;
        };
        if let Some(host) = &origin.host {
            let scheme = origin.scheme.unwrap_or(Scheme::Http);
            let host = match origin.port {
                Some(port) if port != scheme.default_port() => format!("{host}:{port}"),
                _ => host.to_string(),
            };
            head.set_field(b"host", host.as_bytes());
        }
        head.origin = Some(Box::new(origin));
    }

    /// Each field speaks for itself; lists of several hops are read at the client's.
    fn read_x_forwarded(&self, names: Names, head: &Head) -> Origin {
        let mut origin = Origin::default();
        let mut n_hops = 1;
        if names.x_for {
            let nodes =
                elements(head, b"x-forwarded-for").map(|text| Some((node::x_node(text)?, ())));
            if let Some((client, (), index)) = self.nearest_stranger(nodes) {
                (origin.client, n_hops) = (Some(client), index.saturating_add(1));
            }
        }
        // A proxy may write one value instead of one for each hop.
        let at_client = |name| elements(head, name).take(n_hops).last();
        if names.x_proto {
            origin.scheme = at_client(b"x-forwarded-proto").and_then(node::scheme);
        }
        if names.x_host
            && let Some((host, port)) = at_client(b"x-forwarded-host").and_then(node::authority)
        {
            (origin.host, origin.port) = (Some(host.into()), port);
        }
        if names.x_port
            && let Some(port) = at_client(b"x-forwarded-port").and_then(node::port)
        {
            origin.port = Some(port);
        }
        if names.x_prefix {
            let mut prefixes = elements(head, b"x-forwarded-prefix");
            if let (Some(prefix), None) = (prefixes.next(), prefixes.next()) {
                origin.prefix = node::prefix(prefix).map(Into::into);
            }
        }
        origin
    }

    /// RFC 7239: the element of the client's hop says all, or nothing is believed.
    fn read_forwarded(&self, head: &Head) -> Option<Origin> {
        let hops = elements(head, b"forwarded").map(|element| {
            let hop = Hop::parse(element)?;
            // A proxy that says nothing of who asked it hides that.
            let client = hop.client.map_or(Some(Client::Hidden), node::node)?;
            Some((client, hop))
        });
        let (client, hop, _) = self.nearest_stranger(hops)?;
        let mut origin = Origin::default();
        if self.names.forwarded {
            origin.client = hop.client.is_some().then_some(client);
            origin.scheme = match hop.proto {
                Some(proto) => Some(node::scheme(proto)?),
                None => None,
            };
        }
        if self.names.forwarded_host
            && let Some(host) = hop.host
        {
            let (host, port) = node::authority(host)?;
            (origin.host, origin.port) = (Some(host.into()), port);
        }
        Some(origin)
    }

    /// The first hop from the right that is not trusted, and its index from there; the last one, if
    /// all are. `None` if a hop that has to be read is garbage, or there is none.
    fn nearest_stranger<T>(
        &self,
        hops: impl Iterator<Item = Option<(Client, T)>>,
    ) -> Option<(Client, T, usize)> {
        let mut nearest = None;
        for (index, hop) in hops.enumerate() {
            let (client, said) = hop?;
            nearest = Some((client, said, index));
            match client {
                Client::Address(address) if self.trusts(Some(address)) => {}
                _ => break,
            }
        }
        nearest
    }
}

#[cfg(test)]
mod tests;
