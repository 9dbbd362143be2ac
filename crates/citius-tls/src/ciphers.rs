//! OpenSSL's language of cipher lists, as far as there are suites to choose from.
//!
//! rustls has nine suites, all of them with forward secrecy and authenticated encryption. A list that asks for others
//! by name is refused with what there is instead; one that shuts others out is content with what is not there anyway.
//! As with OpenSSL, the suites of TLS 1.3 stay unless the list names some of them.

use rustls::SupportedCipherSuite;
use rustls::crypto::ring::cipher_suite as suites;

use crate::Reason;

/// A suite under its names and the words of cipher lists that mean it.
struct Suite {
    inner: SupportedCipherSuite,
    openssl: &'static str,
    iana: &'static str,
    words: &'static [&'static str],
}

const fn suite(
    inner: SupportedCipherSuite,
    openssl: &'static str,
    iana: &'static str,
    words: &'static [&'static str],
) -> Suite {
    Suite {
        inner,
        openssl,
        iana,
        words,
    }
}

/// Words that mean every suite of TLS 1.2 here. `TLSv1` is uvicorn's default, and OpenSSL too takes it for all from then on.
const ALL: &[&str] = &[
    "ALL", "DEFAULT", "HIGH", "SECURE", "FIPS", "TLSV1", "TLSV1.0", "TLSV1.2", "ECDHE", "EECDH",
    "KECDHE", "KEECDH", "ECDH", "AEAD",
];

#[rustfmt::skip]
static SUITES: [Suite; 9] = [
    suite(suites::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", &[]),
    suite(suites::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", &[]),
    suite(suites::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256", &[]),
    suite(
        suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", &["ECDSA", "AECDSA", "AES", "AES256", "AESGCM", "SHA384"],
    ),
    suite(
        suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", &["ECDSA", "AECDSA", "AES", "AES128", "AESGCM", "SHA256"],
    ),
    suite(
        suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", &["ECDSA", "AECDSA", "CHACHA20"],
    ),
    suite(
        suites::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", &["RSA", "ARSA", "AES", "AES256", "AESGCM", "SHA384"],
    ),
    suite(
        suites::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", &["RSA", "ARSA", "AES", "AES128", "AESGCM", "SHA256"],
    ),
    suite(
        suites::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", &["RSA", "ARSA", "CHACHA20"],
    ),
];

impl Suite {
    fn is_tls13(&self) -> bool {
        self.inner.tls13().is_some()
    }

    fn is_called(&self, name: &str) -> bool {
        self.openssl.eq_ignore_ascii_case(name) || self.iana.eq_ignore_ascii_case(name)
    }

    /// Whether a word of a list, or several joined by `+`, mean this suite among others.
    fn is_meant(&self, words: &str) -> bool {
        !self.is_tls13()
            && words.split('+').all(|word| {
                let word = word.to_ascii_uppercase();
                ALL.contains(&word.as_str()) || self.words.contains(&word.as_str())
            })
    }
}

/// The name of a suite with OpenSSL.
pub(crate) fn name_of(suite: SupportedCipherSuite) -> &'static str {
    let known = SUITES.iter().find(|known| known.inner == suite);
    known.map_or("unknown", |known| known.openssl)
}

/// Whether `suite` is one of `suites`: each exists once.
fn contains(suites: &[&Suite], suite: &Suite) -> bool {
    suites.iter().any(|other| std::ptr::eq(*other, suite))
}

/// The suites that a list means.
pub(crate) fn chosen(list: Option<&str>) -> Result<Vec<SupportedCipherSuite>, Reason> {
    let (tls13, tls12): (Vec<&Suite>, Vec<&Suite>) = SUITES.iter().partition(|s| s.is_tls13());
    let Some(list) = list else {
        return Ok(SUITES.iter().map(|known| known.inner).collect());
    };
    let mut named: Vec<&Suite> = Vec::new();
    let mut shut_out: Vec<&Suite> = Vec::new();
    let mut says_positive = false;
    for token in list.split([':', ',', ' ', ';']) {
        match token.as_bytes().first() {
            // `@STRENGTH` and `+` sort, but whose order counts is the client's; `@SECLEVEL` sets a bar that every
            // suite here passes.
            None | Some(b'@' | b'+') => {}
            Some(b'!' | b'-') => {
                let gone = meaning(&token[1..]);
                named.retain(|one| !contains(&gone, one));
                if token.starts_with('!') {
                    shut_out.extend(gone);
                }
            }
            Some(_) => {
                says_positive = true;
                let meant = meaning(token);
                if meant.is_empty() {
                    return Err(unknown(token));
                }
                for one in meant {
                    if !contains(&named, one) && !contains(&shut_out, one) {
                        named.push(one);
                    }
                }
            }
        }
    }
    if !says_positive {
        named.extend(tls12.iter().filter(|one| !contains(&shut_out, one)));
    }
    if !named.iter().any(|one| one.is_tls13()) {
        let kept = tls13.iter().filter(|one| !contains(&shut_out, one));
        let mut all: Vec<&Suite> = kept.copied().collect();
        all.append(&mut named);
        named = all;
    }
    if named.is_empty() {
        return Err(format!(
            "the cipher list {list:?} leaves no suite; {}",
            there_are()
        ));
    }
    Ok(named.into_iter().map(|known| known.inner).collect())
}

fn meaning(token: &str) -> Vec<&'static Suite> {
    let exact = SUITES.iter().filter(|known| known.is_called(token));
    let exact: Vec<_> = exact.collect();
    if exact.is_empty() {
        SUITES
            .iter()
            .filter(|known| known.is_meant(token))
            .collect()
    } else {
        exact
    }
}

fn unknown(token: &str) -> Reason {
    format!(
        "no cipher suite here is called {token:?}: only those with forward secrecy and authenticated encryption are \
         spoken; {}",
        there_are()
    )
}

fn there_are() -> String {
    let names: Vec<_> = SUITES.iter().map(|known| known.openssl).collect();
    format!("there are {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, expected: &[&str]) {
        let names: Vec<_> = chosen(Some(list))
            .unwrap()
            .into_iter()
            .map(name_of)
            .collect();
        let tls12: Vec<_> = names
            .iter()
            .copied()
            .filter(|n| !n.starts_with("TLS_"))
            .collect();
        assert_eq!(tls12, expected, "{list}");
        assert_eq!(
            names.len() - tls12.len(),
            3,
            "{list}: TLS 1.3 stays as it is"
        );
    }

    #[test]
    fn lists_of_openssl_mean_what_they_mean_there() {
        let six = [
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "ECDHE-RSA-AES128-GCM-SHA256",
            "ECDHE-RSA-CHACHA20-POLY1305",
        ];
        for all in [
            "TLSv1",
            "DEFAULT",
            "HIGH:!aNULL:!MD5",
            "ECDHE",
            "!RC4",
            "ALL:@SECLEVEL=2",
            "HIGH:!kRSA:!DHE",
        ] {
            check(all, &six);
        }
        check(
            "ECDHE+AESGCM:!ECDSA",
            &["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"],
        );
        check(
            "ECDHE-RSA-AES128-GCM-SHA256",
            &["ECDHE-RSA-AES128-GCM-SHA256"],
        );
        check(
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            &["ECDHE-RSA-AES128-GCM-SHA256"],
        );
        check(
            "CHACHA20:AES256",
            &[
                "ECDHE-ECDSA-CHACHA20-POLY1305",
                "ECDHE-RSA-CHACHA20-POLY1305",
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-RSA-AES256-GCM-SHA384",
            ],
        );
        check(
            "!RSA:ECDHE:-CHACHA20",
            &[
                "ECDHE-ECDSA-AES256-GCM-SHA384",
                "ECDHE-ECDSA-AES128-GCM-SHA256",
            ],
        );
    }

    #[test]
    fn suites_of_tls_1_3_stay_unless_some_are_named() {
        let names = |list| -> Vec<_> {
            chosen(Some(list))
                .unwrap()
                .into_iter()
                .map(name_of)
                .collect()
        };
        assert_eq!(names("TLS_AES_128_GCM_SHA256"), ["TLS_AES_128_GCM_SHA256"]);
        assert_eq!(
            names("TLS_AES_128_GCM_SHA256:ECDHE-RSA-AES128-GCM-SHA256").len(),
            2
        );
        assert_eq!(names("ECDHE:!TLS_CHACHA20_POLY1305_SHA256").len(), 8);
        assert_eq!(chosen(None).unwrap().len(), 9);
    }

    #[test]
    fn what_is_not_there_is_refused_with_what_is() {
        for list in [
            "AES128-SHA",
            "DHE-RSA-AES128-GCM-SHA256",
            "RC4",
            "kRSA",
            "ECDHE+3DES",
            "nonsense",
        ] {
            let said = chosen(Some(list)).unwrap_err();
            assert!(
                said.contains(list) && said.contains("ECDHE-RSA-AES256-GCM-SHA384"),
                "{said}"
            );
        }
        let said = chosen(Some(
            "TLS_AES_128_GCM_SHA256:!TLS_AES_128_GCM_SHA256:!TLS_AES_256_GCM_SHA384:\
             !TLS_CHACHA20_POLY1305_SHA256:!ALL",
        ))
        .unwrap_err();
        assert!(said.contains("leaves no suite"), "{said}");
    }
}
