//! What is read off a certificate beyond what rustls reads: names, subject, dates (RFC 5280).

use x509_cert::Certificate;
use x509_cert::crl::CertificateList;
use x509_cert::der::{Decode, oid::AssociatedOid};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use std::net::IpAddr;

use crate::Reason;

/// A certificate's readable parts.
#[derive(Debug)]
pub(crate) struct Facts {
    /// The subject (RFC 4514).
    pub(crate) subject: String,
    /// Who has signed it, in the same form.
    pub(crate) issuer: String,
    /// Names it is good for, in lower case; a wildcard begins with `*.`.
    pub(crate) dns_names: Vec<String>,
    /// Addresses it is good for.
    pub(crate) addresses: Vec<IpAddr>,
    /// Whether it has alternative names of any kind.
    pub(crate) has_alternative_names: bool,
    /// The common name of its subject.
    pub(crate) common_name: Option<String>,
    /// Seconds since 1970 between which it is good.
    pub(crate) valid_s: std::ops::RangeInclusive<u64>,
}

/// The parts of a DER certificate.
pub(crate) fn read(der: &[u8]) -> Result<Facts, Reason> {
    let certificate = Certificate::from_der(der)
        .map_err(|error| format!("it is no X.509 certificate ({error})"))?;
    let certificate = certificate.tbs_certificate;
    let validity = certificate.validity;
    let extensions = certificate.extensions.as_deref().unwrap_or_default();
    Ok(Facts {
        subject: certificate.subject.to_string(),
        issuer: certificate.issuer.to_string(),
        dns_names: alternative_names(extensions).filter_map(dns_name).collect(),
        addresses: alternative_names(extensions).filter_map(address).collect(),
        has_alternative_names: extensions
            .iter()
            .any(|extension| extension.extn_id == SubjectAltName::OID),
        common_name: common_name(&certificate.subject),
        valid_s: validity.not_before.to_unix_duration().as_secs()
            ..=validity.not_after.to_unix_duration().as_secs(),
    })
}

/// The algorithm of the signature under a DER certificate, as a dotted identifier.
pub(crate) fn signature_algorithm(der: &[u8]) -> Option<String> {
    let certificate = Certificate::from_der(der).ok()?;
    Some(certificate.signature_algorithm.oid.to_string())
}

fn common_name(subject: &Name) -> Option<String> {
    let mut attributes = subject.0.iter().flat_map(|relative| relative.0.iter());
    // 2.5.4.3 (RFC 5280 §A.1)
    let found = attributes.find(|attribute| attribute.oid.to_string() == "2.5.4.3")?;
    std::str::from_utf8(found.value.value())
        .ok()
        .map(str::to_owned)
}

/// Seconds since 1970 at which the next update of a DER revocation list is due; `None` if it does not say.
pub(crate) fn crl_next_update_s(der: &[u8]) -> Option<u64> {
    let list = CertificateList::from_der(der).ok()?;
    let next = list.tbs_cert_list.next_update?;
    Some(next.to_unix_duration().as_secs())
}

/// A DER certificate as PEM (RFC 7468).
pub fn pem(der: &[u8]) -> String {
    use pkcs8::der::pem::{LineEnding, encode_string};
    encode_string("CERTIFICATE", LineEnding::LF, der).unwrap_or_default()
}

fn alternative_names(
    extensions: &[x509_cert::ext::Extension],
) -> impl Iterator<Item = GeneralName> {
    extensions
        .iter()
        .filter(|extension| extension.extn_id == SubjectAltName::OID)
        .filter_map(|extension| SubjectAltName::from_der(extension.extn_value.as_bytes()).ok())
        .flat_map(|names| names.0)
}

fn dns_name(name: GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
        _ => None,
    }
}

fn address(name: GeneralName) -> Option<IpAddr> {
    let GeneralName::IpAddress(bytes) = name else {
        return None;
    };
    let bytes = bytes.as_bytes();
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}
