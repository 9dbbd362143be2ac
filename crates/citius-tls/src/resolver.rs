//! Which certificate a client is shown: that of the name it asked for (RFC 6066 §3), or the first.
//!
//! An exact name goes before a wildcard, and a wildcard stands for one label (RFC 9525 §6.3). Of several certificates
//! for one name, say one with an RSA and one with an ECDSA key, the first whose signatures the client understands is taken.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::DnsName;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::challenge;
use crate::identity::Identity;
use crate::settings::Challenges;

/// Finds identities by name.
#[derive(Debug)]
pub(crate) struct Resolver {
    identities: Vec<Arc<Identity>>,
    /// Names in lower case, wildcards with their star, and the identities that have them, in the order given.
    by_name: HashMap<String, Vec<usize>>,
    challenges: Option<Challenges>,
}

/// What a handshake chose. Only the resolver learns it: rustls calls it in the middle of the handshake.
pub(crate) struct Choice {
    pub(crate) identity: Arc<Identity>,
    pub(crate) server_name: Option<Box<str>>,
}

thread_local! {
    static CHOICE: RefCell<Option<Choice>> = const { RefCell::new(None) };
}

/// What the latest handshake of this thread has chosen since this was asked last.
pub(crate) fn take_choice() -> Option<Choice> {
    CHOICE.with_borrow_mut(Option::take)
}

impl Resolver {
    pub(crate) fn new(identities: Vec<Arc<Identity>>, challenges: Option<Challenges>) -> Self {
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, identity) in identities.iter().enumerate() {
            for name in &identity.dns_names {
                by_name.entry(name.clone()).or_default().push(index);
            }
        }
        Self {
            identities,
            by_name,
            challenges,
        }
    }

    /// Whether a certificate is good for `host`, a name or an address without brackets.
    pub(crate) fn covers(&self, host: &str) -> bool {
        match host.parse::<IpAddr>() {
            Ok(address) => self
                .identities
                .iter()
                .any(|identity| identity.addresses.contains(&address)),
            // A wildcard stands for a label of a name, not for any text before a dot.
            Err(_) => DnsName::try_from(host).is_ok() && self.candidates(host).next().is_some(),
        }
    }

    /// Identities for a name, the best first; empty if there is none for it.
    fn candidates(&self, name: &str) -> impl Iterator<Item = &Arc<Identity>> {
        let name = name.to_ascii_lowercase();
        let wildcard = name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        let exact = self.by_name.get(&name);
        let wild = wildcard.and_then(|wildcard| self.by_name.get(&wildcard));
        exact
            .into_iter()
            .chain(wild)
            .flatten()
            .map(|&index| &self.identities[index])
    }

    fn choose(
        &self,
        name: Option<&str>,
        fits: impl Fn(&CertifiedKey) -> bool,
    ) -> Option<&Arc<Identity>> {
        let fits = |identity: &&Arc<Identity>| fits(&identity.key);
        let first = self.identities.first();
        let named: Vec<_> = name
            .into_iter()
            .flat_map(|name| self.candidates(name))
            .collect();
        match named.first() {
            // If the client understands none of them, the handshake fails and says so.
            Some(best) => named.iter().copied().find(fits).or(Some(*best)),
            None => self.identities.iter().find(fits).or(first),
        }
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        let fits = |key: &CertifiedKey| key.key.choose_scheme(schemes).is_some();
        let identity = match &self.challenges {
            Some(challenges) if challenge::is_asked(&hello) => {
                &challenges.answer(hello.server_name()?)?
            }
            _ => self.choose(hello.server_name(), fits)?,
        };
        let choice = Choice {
            identity: Arc::clone(identity),
            server_name: hello.server_name().map(Into::into),
        };
        CHOICE.set(Some(choice));
        Some(Arc::clone(&identity.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::identity;

    #[test]
    fn the_closest_name_wins() {
        let of = |names: &[&str]| Arc::new(identity(names));
        let resolver = Resolver::new(
            vec![
                of(&["default.example"]),
                of(&["*.example.org", "example.org"]),
                of(&["Api.example.org"]),
            ],
            None,
        );
        let asked = |name| resolver.choose(name, |_| true).unwrap().dns_names[0].clone();
        for (name, expected) in [
            (None, "default.example"),
            (Some("elsewhere.net"), "default.example"),
            (Some("example.org"), "*.example.org"),
            (Some("www.EXAMPLE.org"), "*.example.org"),
            (Some("api.example.org"), "api.example.org"),
            // A wildcard stands for one label, not for two or none.
            (Some("a.b.example.org"), "default.example"),
            (Some("org"), "default.example"),
        ] {
            assert_eq!(asked(name), expected, "{name:?}");
        }
    }

    #[test]
    fn a_wildcard_covers_names_only() {
        let resolver = Resolver::new(vec![Arc::new(identity(&["*.example.org"]))], None);
        for host in ["www.example.org", "WWW.example.org", "a_b.example.org"] {
            assert!(resolver.covers(host), "{host}");
        }
        for host in [
            ".example.org",
            "*.example.org",
            "-.example.org",
            "evil.net%2f.example.org",
            "%0d%0a.example.org",
            "a'.example.org",
        ] {
            assert!(!resolver.covers(host), "{host}");
        }
    }

    #[test]
    fn of_two_keys_for_a_name_the_one_the_client_understands() {
        let one = Arc::new(identity(&["example.org"]));
        let other = Arc::new(identity(&["example.org"]));
        let resolver = Resolver::new(vec![Arc::clone(&one), Arc::clone(&other)], None);
        let chosen = resolver.choose(Some("example.org"), |key| {
            std::ptr::eq(key, &raw const *other.key)
        });
        assert!(Arc::ptr_eq(chosen.unwrap(), &other));
        let chosen = resolver.choose(Some("example.org"), |_| false);
        assert!(Arc::ptr_eq(chosen.unwrap(), &one));
    }
}
