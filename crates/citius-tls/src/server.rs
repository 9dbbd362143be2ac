//! What sessions are made from, and how it is renewed when files change.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};

use crate::identity::Identity;
use crate::quic::QuicServer;
use crate::resolver::Resolver;
use crate::session::{Failure, Session};
use crate::settings::{ClientAuth, Settings};
use crate::tickets::{self, Ticketer, Tickets};
use crate::{Reason, challenge, ciphers, clients, files, system};

/// Certificates, rules and ticket keys of one worker.
#[derive(Debug)]
pub struct Server {
    config: Arc<ServerConfig>,
    resolver: Arc<Resolver>,
    /// The same for listeners where one protocol alone is spoken, with its name; made when first asked for.
    of_one: Vec<(Vec<u8>, Arc<ServerConfig>)>,
    settings: Settings,
    tickets: Tickets,
    stamps: files::Stamps,
    warnings: Vec<String>,
}

/// Days before its end from which a certificate is warned about.
const ENDS_SOON_S: u64 = 7 * 24 * 60 * 60;

impl Server {
    /// Loads everything that `settings` name.
    ///
    /// # Errors
    /// Something is missing, unreadable, or does not fit.
    pub fn load(mut settings: Settings, tickets: Tickets) -> Result<Self, Reason> {
        let stamps = files::Stamps::take(&settings);
        let (config, resolver, warnings) = configure(&settings, &tickets)?;
        settings.opened.clear();
        Ok(Self {
            config: Arc::new(config),
            resolver,
            of_one: Vec::new(),
            settings,
            tickets,
            stamps,
            warnings,
        })
    }

    /// What can be used but should be looked at: certificates that have expired or soon will, keys that others can read.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Loads the files again if one of them has changed since they were last looked at; `None` if none has.
    ///
    /// # Errors
    /// They cannot be used as they are now. What was loaded before stays in force, and they are tried again when they
    /// have changed again.
    pub fn renew(&mut self) -> Option<Result<(), Reason>> {
        if !self.stamps.are_stale() {
            return None;
        }
        self.stamps = files::Stamps::take(&self.settings);
        let renewed = configure(&self.settings, &self.tickets);
        Some(renewed.map(|(config, resolver, warnings)| {
            self.config = Arc::new(config);
            self.resolver = resolver;
            self.of_one.clear();
            self.warnings = warnings;
        }))
    }

    /// Whether a certificate is good for `host`, a name or an address without brackets.
    pub fn covers(&self, host: &str) -> bool {
        self.resolver.covers(host)
    }

    /// Whether certificates are fetched from an authority, which may ask over HTTP too (RFC 8555 §8.3).
    pub fn has_challenges(&self) -> bool {
        self.settings.challenges.is_some()
    }

    /// What handshakes of QUIC are made from (RFC 9001), where `protocols` are spoken, the preferred one first.
    ///
    /// # Errors
    /// No cipher suite of TLS 1.3 is left, which QUIC has to use.
    pub fn quic(&self, protocols: &[&[u8]]) -> Result<QuicServer, Reason> {
        QuicServer::new(&self.config, protocols, self.settings.handshake_bytes_max)
    }

    /// A session for a new connection.
    ///
    /// # Errors
    /// rustls has no memory or random numbers for it.
    pub fn session(&self) -> Result<Session, Failure> {
        Session::new(Arc::clone(&self.config), self.settings.handshake_bytes_max)
    }

    /// The same where only `protocol` is spoken above TLS: who asks for others by ALPN, as browsers do, is refused, and
    /// who asks for none is not.
    ///
    /// # Errors
    /// Those of [`session`](Self::session).
    pub fn session_for(&mut self, protocol: &[u8]) -> Result<Session, Failure> {
        let made = self.of_one.iter().find(|(name, _)| name == protocol);
        let config = if let Some((_, config)) = made {
            Arc::clone(config)
        } else {
            let mut config = ServerConfig::clone(&self.config);
            config.alpn_protocols = vec![protocol.to_vec()];
            if self.has_challenges() {
                config.alpn_protocols.push(challenge::PROTOCOL.to_vec());
            }
            let config = Arc::new(config);
            self.of_one.push((protocol.to_vec(), Arc::clone(&config)));
            config
        };
        Session::new(config, self.settings.handshake_bytes_max)
    }
}

/// The certificates of `settings`, and what is to be said of them.
fn load_identities(
    settings: &Settings,
    now_s: u64,
) -> Result<(Vec<Arc<Identity>>, Vec<String>), Reason> {
    let (mut identities, mut warnings) = (Vec::new(), Vec::new());
    for from in &settings.identities {
        let identity = Identity::load(settings, from)?;
        let name = from.certificate.display();
        if now_s > *identity.valid_s.end() {
            warnings.push(format!(
                "the certificate {name} has expired: clients will refuse it"
            ));
        } else if now_s < *identity.valid_s.start() {
            warnings.push(format!(
                "the certificate {name} is not valid yet: clients will refuse it"
            ));
        } else if now_s + ENDS_SOON_S > *identity.valid_s.end() {
            let hours = (*identity.valid_s.end() - now_s) / 3600;
            warnings.push(format!("the certificate {name} expires in {hours} hours"));
        }
        if let Some(why) = &identity.disorder {
            warnings.push(format!("the certificate chain {name} {why}"));
        }
        if system::is_world_readable(settings.source(&from.key)) {
            let key = from.key.display();
            warnings.push(format!(
                "all users of this machine can read the key {key}; `chmod 600 {key}`"
            ));
        }
        identities.push(Arc::new(identity));
    }
    Ok((identities, warnings))
}

fn configure(
    settings: &Settings,
    tickets: &Tickets,
) -> Result<(ServerConfig, Arc<Resolver>, Vec<String>), Reason> {
    let now_s = tickets::wall_s();
    let (identities, mut warnings) = load_identities(settings, now_s)?;
    if identities.is_empty() {
        return Err("there is no certificate to show; give one with --ssl-certfile".into());
    }
    if settings.client_auth == ClientAuth::Off && settings.client_ca.is_some() {
        warnings.push(
            "--ssl-ca-certs has no effect without --ssl-cert-reqs: clients are asked for nothing"
                .into(),
        );
    }
    if settings.client_auth == ClientAuth::Off && !settings.crls.is_empty() {
        warnings.push(
            "--ssl-crl has no effect without --ssl-cert-reqs: clients are asked for nothing".into(),
        );
    }
    let provider = Arc::new(CryptoProvider {
        cipher_suites: ciphers::chosen(settings.ciphers.as_deref())?,
        ..ring::default_provider()
    });
    let rules = clients::rules(settings, Arc::clone(&provider), now_s)?;
    warnings.extend_from_slice(&rules.warnings);
    let resolver = Arc::new(Resolver::new(identities, settings.challenges.clone()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(settings.version_min.and_later())
        .map_err(|error| format!("no cipher suite is left for the versions to be spoken: {error}"))?
        .with_client_cert_verifier(rules.verifier)
        .with_cert_resolver(Arc::clone(&resolver) as _);
    config.alpn_protocols.clone_from(&settings.protocols);
    if settings.challenges.is_some() {
        config.alpn_protocols.push(challenge::PROTOCOL.to_vec());
    }
    config.ticketer = Arc::new(Ticketer::new(tickets, rules.id, now_s));
    Ok((config, resolver, warnings))
}
