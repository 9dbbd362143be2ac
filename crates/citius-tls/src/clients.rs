//! Whose certificates clients may show, and which of them are revoked (RFC 5280).

use std::sync::Arc;

use ring::digest::{Context, SHA256};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

use crate::settings::{ClientAuth, Settings};
use crate::tickets::GoodUntil;
use crate::{Reason, certificate, files, identity};

/// How clients are judged, and what identifies these rules.
pub(crate) struct Rules {
    /// Revocation lists that are past their next update.
    pub(crate) warnings: Vec<String>,
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
    pub(crate) id: [u8; 32],
}

/// Verifies as `inner` does, and says until when the outcome is good.
#[derive(Debug)]
struct Dated {
    inner: Arc<dyn ClientCertVerifier>,
    /// The first next update of a revocation list.
    lists_until_s: u64,
}

impl ClientCertVerifier for Dated {
    fn offer_client_auth(&self) -> bool {
        self.inner.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.inner.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.inner.verify_client_cert(shown, intermediates, now)?;
        let mut until_s = self.lists_until_s;
        for der in std::iter::once(shown).chain(intermediates) {
            // What cannot be read is no part of the path that was verified, or is good for this handshake alone.
            let end_s = certificate::read(der).map_or(0, |facts| *facts.valid_s.end());
            until_s = until_s.min(end_s);
        }
        GoodUntil::set(until_s);
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, shown, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, shown, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// The revocation lists of `settings`, and what is to be said of them.
fn revocation_lists(
    settings: &Settings,
    now_s: u64,
) -> Result<(Vec<CertificateRevocationListDer<'static>>, Vec<String>), Reason> {
    let (mut lists, mut warnings) = (Vec::new(), Vec::new());
    for path in &settings.crls {
        let pem = files::read(settings, path, "revocation list")?;
        let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&pem).collect();
        let found =
            found.map_err(|error| format!("{} is no valid PEM: {error}", path.display()))?;
        if found.is_empty() {
            return Err(format!(
                "{} has no revocation list: expected PEM with -----BEGIN X509 CRL-----",
                path.display()
            ));
        }
        let is_late = |list: &CertificateRevocationListDer<'_>| {
            certificate::crl_next_update_s(list).is_some_and(|next_s| next_s < now_s)
        };
        for _ in found.iter().filter(|list| is_late(list)) {
            warnings.push(format!(
                "the revocation list {} is past its next update: no client certificate of its issuer is accepted \
                 until a newer list is there",
                path.display()
            ));
        }
        lists.extend(found);
    }
    Ok((lists, warnings))
}

/// The rules of `settings`.
///
/// A revocation list is taken as OpenSSL takes it: each certificate of a chain needs one, and a list that is past its
/// next update is not used, so the certificates that need it are refused.
pub(crate) fn rules(
    settings: &Settings,
    provider: Arc<CryptoProvider>,
    now_s: u64,
) -> Result<Rules, Reason> {
    let mut context = Context::new(&SHA256);
    context.update(&[match settings.client_auth {
        ClientAuth::Off => 0,
        ClientAuth::Optional => 1,
        ClientAuth::Required => 2,
    }]);
    if settings.client_auth == ClientAuth::Off {
        return Ok(Rules {
            warnings: Vec::new(),
            verifier: WebPkiClientVerifier::no_client_auth(),
            id: id(context),
        });
    }
    let Some(path) = &settings.client_ca else {
        return Err(
            "client certificates are asked for, but not whose: give the certificates of those who issue them with \
             --ssl-ca-certs"
                .into(),
        );
    };
    let mut roots = RootCertStore::empty();
    for certificate in identity::certificates(&files::read(settings, path, "CA bundle")?, path)? {
        context.update(&certificate);
        roots.add(certificate).map_err(|error| {
            format!(
                "{} has a certificate that cannot be a CA's: {error}",
                path.display()
            )
        })?;
    }
    let (lists, warnings) = revocation_lists(settings, now_s)?;
    let mut lists_until_s = u64::MAX;
    for list in &lists {
        context.update(list);
        let next_s = certificate::crl_next_update_s(list).unwrap_or(u64::MAX);
        lists_until_s = lists_until_s.min(next_s);
    }
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .with_crls(lists)
        .enforce_revocation_expiration();
    if settings.client_auth == ClientAuth::Optional {
        builder = builder.allow_unauthenticated();
    }
    let verifier = builder
        .build()
        .map_err(|error| format!("the rules for client certificates cannot be used: {error}"))?;
    Ok(Rules {
        warnings,
        verifier: Arc::new(Dated {
            inner: verifier,
            lists_until_s,
        }),
        id: id(context),
    })
}

fn id(context: Context) -> [u8; 32] {
    let mut id = [0; 32];
    id.copy_from_slice(context.finish().as_ref());
    id
}
