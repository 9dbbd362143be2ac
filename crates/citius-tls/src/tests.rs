//! Sessions against rustls' own client, in memory.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer,
    ExtendedKeyUsagePurpose, IsCa, KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams,
    SerialNumber,
};
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, HandshakeKind, RootCertStore};

use crate::identity::Identity;
use crate::settings::IdentityFiles;
use crate::*;

const INBOX_BYTES: usize = 64 * 1024;

/// A certificate for `names`, signed by itself.
pub(crate) fn identity(names: &[&str]) -> Identity {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    Identity::new(vec![made.cert.der().clone()], &key).unwrap()
}

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        let name = format!(
            "citius-tls-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A CA that signs for servers and clients.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Two of one name would be taken for each other until the signature is looked at.
        let name = format!("Authority {}", COUNT.fetch_add(1, Ordering::Relaxed));
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (String, String) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn revoke(&self, serial: u64) -> String {
        let day = |day| rcgen::date_time_ymd(day, 1, 1);
        let params = CertificateRevocationListParams {
            this_update: day(2020),
            next_update: day(2100),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: day(2021),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0).unwrap().pem().unwrap()
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }
}

/// A server and the means to talk to it.
struct Scene {
    directory: Directory,
    authority: Authority,
    settings: Settings,
}

impl Scene {
    fn new() -> Self {
        let (directory, authority) = (Directory::new(), Authority::new());
        let mut scene = Self {
            directory,
            authority,
            settings: Settings {
                handshake_bytes_max: 32 * 1024,
                ..Settings::default()
            },
        };
        scene.add(&["localhost"]);
        scene
    }

    fn add(&mut self, names: &[&str]) {
        let (certificate, key) = self.authority.sign(names, |_| {});
        let files = IdentityFiles {
            certificate: self
                .directory
                .write(&format!("{}.pem", names[0]), &certificate),
            key: self.directory.write(&format!("{}-key.pem", names[0]), &key),
        };
        self.settings.identities.push(files);
    }

    fn require_clients(&mut self, how: ClientAuth) {
        self.settings.client_auth = how;
        self.settings.client_ca = Some(self.directory.write("ca.pem", &self.authority.0.pem()));
    }

    fn server(&self) -> Server {
        Server::load(self.settings.clone(), Tickets::new(0)).unwrap()
    }

    fn client(&self) -> ClientConfig {
        self.client_with(&[&rustls::version::TLS13, &rustls::version::TLS12])
    }

    fn client_with(&self, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(self.authority.roots())
            .with_no_client_auth()
    }

    fn client_that_shows(&self, certificate: &str, key: &str) -> ClientConfig {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.authority.roots())
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap()
    }
}

/// Both ends of one connection. What the server sends is cut into pieces of `step` bytes on both ways.
struct Pair {
    client: ClientConnection,
    session: Session,
    scratch: TlsScratch,
    step: usize,
    /// What the server has understood.
    plain: Vec<u8>,
    /// What waits to be sealed by the server.
    queue: Vec<Vec<u8>>,
    /// What the client has understood.
    responses: Vec<u8>,
}

impl Pair {
    fn new(server: &Server, client: ClientConfig, name: &str) -> Self {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        Self {
            client: ClientConnection::new(Arc::new(client), name).unwrap(),
            session: server.session().unwrap(),
            scratch: TlsScratch::new(INBOX_BYTES),
            step: usize::MAX,
            plain: Vec::new(),
            queue: Vec::new(),
            responses: Vec::new(),
        }
    }

    /// Lets both talk until neither has anything to say.
    fn talk(&mut self) -> Result<(), String> {
        loop {
            let mut quiet = true;
            let mut wire = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut wire).unwrap();
            }
            for piece in wire.chunks(self.step.min(INBOX_BYTES / 2)) {
                quiet = false;
                self.feed(piece)?;
            }
            while self.session.wants_write() || !self.queue.is_empty() {
                quiet = false;
                self.flush()?;
            }
            if quiet {
                return Ok(());
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut inbox = vec![0; INBOX_BYTES];
        let fetch = |room: &mut [u8]| {
            room[..bytes.len()].copy_from_slice(bytes);
            Ok::<_, ()>(bytes.len())
        };
        match self.session.receive(&mut self.scratch, &mut inbox, fetch) {
            Ok(n) => self.plain.extend_from_slice(&inbox[..n]),
            Err(Stop::Failed(failure)) => {
                // The alert reaches the client, which has its own word for it.
                while self.session.wants_write() {
                    let _ = self.flush();
                }
                return Err(failure.to_string());
            }
            Err(other) => return Err(format!("{other:?}")),
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        let (client, responses, step) = (&mut self.client, &mut self.responses, self.step);
        let mut failure = None;
        let done = self.session.transmit(
            &mut self.scratch,
            self.queue.iter().map(Vec::as_slice),
            |sealed| {
                let n = sealed.len().min(step);
                let mut rest = &sealed[..n];
                while !rest.is_empty() {
                    if client.read_tls(&mut rest).unwrap() == 0 {
                        break;
                    }
                    match client.process_new_packets() {
                        Ok(state) => {
                            let mut plain = vec![0; state.plaintext_bytes_to_read()];
                            client.reader().read_exact(&mut plain).unwrap();
                            responses.extend(plain);
                        }
                        Err(error) => failure = Some(error.to_string()),
                    }
                }
                Ok::<_, ()>(n)
            },
        );
        let mut done = done.map_err(|stop| format!("{stop:?}"))?;
        while done > 0 {
            let first = &mut self.queue[0];
            let step = done.min(first.len());
            first.drain(..step);
            done -= step;
            if first.is_empty() {
                self.queue.remove(0);
            }
        }
        self.queue.retain(|piece| !piece.is_empty());
        failure.map_or(Ok(()), Err)
    }

    fn established(mut self) -> Self {
        self.talk().unwrap();
        assert!(self.session.facts().is_some() && !self.client.is_handshaking());
        self
    }
}

#[test]
fn both_versions_carry_bytes_both_ways_however_they_are_cut() {
    let scene = Scene::new();
    let large: Vec<u8> = (0..200_000u32)
        .map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1])
        .collect();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        for step in [1, 7, 1000, usize::MAX] {
            let mut pair = Pair::new(&scene.server(), scene.client_with(&[version]), "localhost");
            pair.step = step;
            let mut pair = pair.established();
            assert_eq!(
                pair.session.facts().unwrap().version,
                u16::from(version.version)
            );
            pair.client.writer().write_all(&large[..60_000]).unwrap();
            // Small pieces, a large one, and small ones again.
            pair.queue = vec![
                b"head".to_vec(),
                large.clone(),
                b"a".to_vec(),
                b"tail".to_vec(),
            ];
            pair.talk().unwrap();
            assert_eq!(pair.plain, &large[..60_000], "{step}");
            assert_eq!(
                pair.responses,
                [b"head", &large[..], b"atail"].concat(),
                "{step}"
            );
        }
    }
}

#[test]
fn records_are_filled_and_plaintext_counts_when_all_of_it_is_sent() {
    let scene = Scene::new();
    let mut pair = Pair::new(
        &scene.server(),
        scene.client_with(&[&rustls::version::TLS13]),
        "localhost",
    )
    .established();
    let large = vec![b'x'; 100_000];
    let mut wire = Vec::new();
    let pieces = [&b"head"[..], &large];
    let done = pair.session.transmit(&mut pair.scratch, pieces, |sealed| {
        wire.extend_from_slice(sealed);
        Ok::<_, ()>(sealed.len())
    });
    assert_eq!(done, Ok(64 * 1024));
    let mut lengths = Vec::new();
    let mut rest = wire.as_slice();
    while let [_, _, _, high, low, body @ ..] = rest {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        lengths.push(len);
        rest = &body[len..];
    }
    assert_eq!(
        lengths,
        [16 * 1024 + 17; 4],
        "four full records and nothing else"
    );
    // What the socket does not take at once is not offered again as plaintext, and not sealed twice.
    for (taken, expected) in [(10, 0), (100, 0), (usize::MAX, 64 * 1024)] {
        let done = pair
            .session
            .transmit(&mut pair.scratch, [&large[..]], |sealed| {
                Ok::<_, ()>(sealed.len().min(taken))
            });
        assert_eq!(done, Ok(expected));
        assert_eq!(pair.session.is_sending(), expected == 0);
    }
    let full = pair
        .session
        .transmit(&mut pair.scratch, [&b"x"[..]], |_| Err::<usize, _>("full"));
    assert_eq!(full, Err(Stop::Io("full")));
    assert!(pair.session.wants_write() && pair.session.is_sending());
}

#[test]
fn a_session_at_rest_holds_no_bytes() {
    let scene = Scene::new();
    let mut pair = Pair::new(&scene.server(), scene.client(), "localhost").established();
    pair.queue = vec![vec![b'x'; 100_000]];
    pair.client.writer().write_all(&vec![b'y'; 50_000]).unwrap();
    pair.talk().unwrap();
    let text = format!("{:?}", pair.session);
    assert!(text.contains("held: 0, unsent: 0"), "{text}");
}

#[test]
fn the_name_asked_for_chooses_the_certificate() {
    let mut scene = Scene::new();
    scene.add(&["*.example.org"]);
    let server = scene.server();
    for (name, is_known) in [
        ("localhost", true),
        ("www.example.org", true),
        ("example.org", false),
    ] {
        let mut pair = Pair::new(&server, scene.client(), name);
        assert_eq!(pair.talk().is_ok(), is_known, "{name}");
        if is_known {
            assert_eq!(
                pair.session.facts().unwrap().server_name.as_deref(),
                Some(name)
            );
        }
    }
}

#[test]
fn protocols_are_agreed_on() {
    let mut scene = Scene::new();
    scene.settings.protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let server = scene.server();
    for (offered, expected) in [
        (vec!["http/1.1", "h2"], Ok(Some(&b"h2"[..]))),
        (vec!["http/1.1"], Ok(Some(b"http/1.1"))),
        (vec![], Ok(None)),
        (vec!["smtp"], Err(())),
    ] {
        let mut client = scene.client();
        client.alpn_protocols = offered
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        let mut pair = Pair::new(&server, client, "localhost");
        let outcome = pair.talk().map_err(|_| ());
        assert_eq!(
            outcome.map(|()| pair.session.protocol()),
            expected,
            "{offered:?}"
        );
    }
}

#[test]
fn sessions_are_taken_up_again_and_by_other_workers() {
    let scene = Scene::new();
    let tickets = Tickets::new(0);
    let (one, other) = (
        Server::load(scene.settings.clone(), tickets.clone()).unwrap(),
        Server::load(scene.settings.clone(), tickets).unwrap(),
    );
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let mut client = scene.client_with(&[version]);
        client.resumption = Resumption::in_memory_sessions(8);
        for (server, is_resumed) in [
            (&one, false),
            (&other, true),
            (&one, true),
            (&scene.server(), false),
        ] {
            let pair = Pair::new(server, client.clone(), "localhost").established();
            assert_eq!(
                pair.client.handshake_kind() == Some(HandshakeKind::Resumed),
                is_resumed
            );
            assert_eq!(pair.session.facts().unwrap().is_resumed, is_resumed);
        }
    }
}

#[test]
fn certificates_of_clients() {
    let mut scene = Scene::new();
    let (known, key) = scene.authority.sign(&["alice"], |params| {
        params.serial_number = Some(SerialNumber::from(41));
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, "Alice, Ltd.");
    });
    let (revoked, revoked_key) = scene.authority.sign(&["mallory"], |params| {
        params.serial_number = Some(SerialNumber::from(42));
    });
    let (foreign, foreign_key) = Authority::new().sign(&["eve"], |_| {});
    let crl = scene.authority.revoke(42);
    scene.settings.crls = vec![scene.directory.write("crl.pem", &crl)];
    for (how, without) in [(ClientAuth::Optional, true), (ClientAuth::Required, false)] {
        scene.require_clients(how);
        let server = scene.server();
        let mut pair = Pair::new(&server, scene.client(), "localhost");
        assert_eq!(pair.talk().is_ok(), without);
        let pair =
            Pair::new(&server, scene.client_that_shows(&known, &key), "localhost").established();
        let facts = pair.session.facts().unwrap();
        assert_eq!(facts.client_chain.len(), 1);
        let name = facts.client_name.as_deref().unwrap();
        assert!(name.contains(r"CN=Alice\, Ltd."), "{name}");
        for (certificate, key, why) in [
            (&revoked, &revoked_key, "Revoked"),
            (&foreign, &foreign_key, "UnknownIssuer"),
        ] {
            let said = Pair::new(
                &server,
                scene.client_that_shows(certificate, key),
                "localhost",
            )
            .talk();
            assert!(said.clone().unwrap_err().contains(why), "{said:?}");
        }
    }
}

#[test]
fn a_session_does_not_outlive_the_rules_it_was_given_under() {
    let mut scene = Scene::new();
    let tickets = Tickets::new(0);
    let lenient = Server::load(scene.settings.clone(), tickets.clone()).unwrap();
    scene.require_clients(ClientAuth::Required);
    let strict = Server::load(scene.settings.clone(), tickets).unwrap();
    let mut client = scene.client();
    client.resumption = Resumption::in_memory_sessions(8);
    Pair::new(&lenient, client.clone(), "localhost").established();
    assert!(Pair::new(&strict, client, "localhost").talk().is_err());
}

#[test]
fn garbage_ends_the_session_with_an_alert() {
    let scene = Scene::new();
    for bytes in [
        &b"\x16\x03\x01\x00\x05hello"[..],
        b"\x17\x03\x03\x00\x05hello",
        b"\x16\x03\x01\xff\xff",
        b"\x80\x2e\x01\x00\x02",
        b"\x00\x00\x00\x00\x00\x00",
    ] {
        let mut pair = Pair::new(&scene.server(), scene.client(), "localhost");
        assert!(pair.feed(bytes).is_err(), "{bytes:?}");
        assert!(pair.session.close().is_empty(), "a cut is no clean end");
        // Nothing more is read.
        assert_eq!(pair.feed(bytes), Ok(()));
        assert!(pair.plain.is_empty());
    }
    let mut pair = Pair::new(&scene.server(), scene.client(), "localhost");
    let mut sealed = Vec::new();
    assert!(
        pair.session
            .receive(&mut pair.scratch, &mut vec![0; INBOX_BYTES], |room| {
                room[..9].copy_from_slice(b"\x16\x03\x01\x00\x04\x01\x00\x00\x00");
                Ok::<_, ()>(9)
            })
            .is_err()
    );
    let sent = pair.session.transmit(&mut pair.scratch, [], |bytes| {
        sealed.extend_from_slice(bytes);
        Ok::<_, ()>(bytes.len())
    });
    assert_eq!(sent, Ok(0));
    assert_eq!(sealed[..1], [21], "an alert");
}

#[test]
fn clear_text_is_told_from_tls() {
    let scene = Scene::new();
    for request in [
        "GET / HTTP/1.1\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "X",
    ] {
        let mut pair = Pair::new(&scene.server(), scene.client(), "localhost");
        assert_eq!(pair.feed(request.as_bytes()), Err("ClearText".into()));
        assert!(!pair.session.wants_write());
    }
}

#[test]
fn an_endless_handshake_message_is_not_kept() {
    let mut scene = Scene::new();
    scene.settings.handshake_bytes_max = 20_000;
    let mut pair = Pair::new(&scene.server(), scene.client(), "localhost");
    // A ClientHello that promises 60 000 bytes, in records of 1 000.
    let mut message = vec![1, 0, 0xea, 0x60];
    message.resize(60_004, 0);
    let mut fed = 0;
    let said = message.chunks(1000).find_map(|piece| {
        let record = [&[0x16, 3, 1, 3, 0xe8][..], piece].concat();
        fed += record.len();
        pair.feed(&record).err()
    });
    assert!(
        said.clone().unwrap().contains("more than 20000 bytes"),
        "{said:?}"
    );
    assert!(fed < 22_000, "{fed}");
}

#[test]
fn a_clean_end_can_be_told_from_a_cut() {
    let scene = Scene::new();
    let mut pair = Pair::new(&scene.server(), scene.client(), "localhost").established();
    pair.client.send_close_notify();
    pair.talk().unwrap();
    assert!(pair.session.peer_has_closed());
    // The other direction is still open (RFC 8446 §6.1).
    pair.queue = vec![b"last words".to_vec()];
    pair.talk().unwrap();
    assert_eq!(pair.responses, b"last words");
    let words = pair.session.close();
    let mut rest = words.as_slice();
    pair.client.read_tls(&mut rest).unwrap();
    assert!(pair.client.process_new_packets().unwrap().peer_has_closed());
    assert!(pair.session.close().len() <= words.len());
}

#[test]
fn new_files_take_the_place_of_old_ones_and_broken_ones_do_not() {
    let mut scene = Scene::new();
    let (server, files) = (&mut scene.server(), scene.settings.identities[0].clone());
    assert!(server.renew().is_none());
    let shown = |server: &Server| {
        let pair = Pair::new(server, scene.client(), "localhost").established();
        pair.session.facts().unwrap().certificate.clone()
    };
    let before = shown(server);
    fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\nnonsense").unwrap();
    let said = server.renew().unwrap().unwrap_err();
    assert!(said.contains("localhost.pem"), "{said}");
    assert!(server.renew().is_none(), "said once");
    assert_eq!(shown(server), before);
    let (certificate, key) = scene.authority.sign(&["localhost"], |_| {});
    fs::write(&files.certificate, &certificate).unwrap();
    let said = server.renew().unwrap().unwrap_err();
    assert!(said.contains("do not belong together"), "{said}");
    fs::write(&files.key, &key).unwrap();
    assert_eq!(server.renew(), Some(Ok(())));
    assert_ne!(shown(server), before);
    scene.settings.identities.clear();
}

#[track_caller]
fn refused(change: impl FnOnce(&mut Scene), expected: &[&str]) {
    let mut scene = Scene::new();
    change(&mut scene);
    let said = Server::load(scene.settings.clone(), Tickets::new(0)).unwrap_err();
    for words in expected {
        assert!(said.contains(words), "{said:?} does not say {words:?}");
    }
}

#[test]
fn what_cannot_be_used_is_refused_with_what_to_do() {
    let rewrite = |path: fn(&Scene) -> &Path, text: &str| {
        let text = text.to_owned();
        move |scene: &mut Scene| fs::write(path(scene), text).unwrap()
    };
    let certificate: fn(&Scene) -> &Path = |scene| &scene.settings.identities[0].certificate;
    let key: fn(&Scene) -> &Path = |scene| &scene.settings.identities[0].key;
    refused(
        |scene| fs::remove_file(certificate(scene)).unwrap(),
        &["cannot read the certificate", "no such file"],
    );
    refused(
        |scene| fs::remove_file(key(scene)).unwrap(),
        &["cannot read the key", "no such file"],
    );
    refused(
        rewrite(certificate, "hello"),
        &["has no certificate", "BEGIN CERTIFICATE"],
    );
    refused(
        rewrite(certificate, "0\u{1}"),
        &["openssl x509 -inform der"],
    );
    refused(
        rewrite(key, "hello"),
        &["has no private key", "BEGIN PRIVATE KEY"],
    );
    refused(
        rewrite(
            key,
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAA==\n-----END RSA PRIVATE KEY-----\n",
        ),
        &["OpenSSL's old way", "openssl pkcs8 -topk8 -in"],
    );
    let other = KeyPair::generate().unwrap().serialize_pem();
    refused(rewrite(key, &other), &["do not belong together"]);
}

#[test]
fn settings_that_leave_nothing_are_refused_with_what_to_do() {
    refused(
        |scene| scene.settings.ciphers = Some("RC4".into()),
        &["RC4", "there are TLS_AES"],
    );
    refused(
        |scene| {
            scene.settings.ciphers = Some("ECDHE:!TLS_AES_128_GCM_SHA256:!TLS_AES_256_GCM_SHA384:!TLS_CHACHA20_POLY1305_SHA256".into());
            scene.settings.version_min = Version::Tls13;
        },
        &["no cipher suite is left"],
    );
    refused(
        |scene| scene.settings.client_auth = ClientAuth::Required,
        &["--ssl-ca-certs"],
    );
    refused(
        |scene| {
            scene.require_clients(ClientAuth::Required);
            scene.settings.crls = vec![scene.settings.identities[0].certificate.clone()];
        },
        &["has no revocation list", "BEGIN X509 CRL"],
    );
    refused(
        |scene| scene.settings.identities.clear(),
        &["--ssl-certfile"],
    );
}

#[test]
fn keys_under_a_password_are_opened() {
    let mut scene = Scene::new();
    let key = scene.settings.identities[0].key.clone();
    let plain = fs::read_to_string(&key).unwrap();
    let pkcs8 = PrivateKeyDer::from_pem_slice(plain.as_bytes()).unwrap();
    let parameters =
        pkcs8::pkcs5::pbes2::Parameters::pbkdf2_sha256_aes256cbc(1000, b"some salt", &[7; 16])
            .unwrap();
    let sealed = pkcs8::PrivateKeyInfo::try_from(pkcs8.secret_der()).unwrap();
    let sealed = sealed
        .encrypt_with_params(parameters, "open sesame")
        .unwrap();
    let pem = sealed
        .to_pem("ENCRYPTED PRIVATE KEY", pkcs8::LineEnding::LF)
        .unwrap();
    fs::write(&key, pem.as_bytes()).unwrap();
    let load = |scene: &Scene| Server::load(scene.settings.clone(), Tickets::new(0)).map(|_| ());
    let said = load(&scene).unwrap_err();
    assert!(said.contains("--ssl-keyfile-password"), "{said}");
    scene.settings.password = Some("open barley".into());
    let said = load(&scene).unwrap_err();
    assert!(said.contains("does not fit"), "{said}");
    scene.settings.password = Some("open sesame".into());
    assert_eq!(load(&scene), Ok(()));
}

#[test]
fn certificates_out_of_their_time_and_open_keys_are_warned_about() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let files = scene.settings.identities[0].clone();
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o644)).unwrap();
    let server = scene.server();
    assert!(
        server
            .warnings()
            .iter()
            .any(|said| said.contains("chmod 600")),
        "{:?}",
        server.warnings()
    );
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(scene.server().warnings(), [""; 0]);
    for (from, until, expected) in [(2000, 2001, "has expired"), (2200, 2201, "not valid yet")] {
        let (certificate, key) = scene.authority.sign(&["localhost"], |params| {
            params.not_before = rcgen::date_time_ymd(from, 1, 1);
            params.not_after = rcgen::date_time_ymd(until, 1, 1);
        });
        fs::write(&files.certificate, certificate).unwrap();
        fs::write(&files.key, key).unwrap();
        let server = scene.server();
        assert!(
            server.warnings()[0].contains(expected),
            "{:?}",
            server.warnings()
        );
    }
}

#[test]
fn servers_that_start_at_once_share_one_development_certificate() {
    let directory = Directory::new();
    let kept = directory.0.join("new");
    let made: Vec<_> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| development(&kept).unwrap()))
            .collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(made.iter().filter(|one| one.is_new).count(), 1);
    assert!(
        made.iter()
            .all(|one| one.fingerprint == made[0].fingerprint)
    );
    assert!(
        !development(&kept).unwrap().is_new,
        "key and certificate fit"
    );
}

#[test]
fn the_development_certificate_is_made_once() {
    let directory = Directory::new();
    let kept = directory.0.join("a/b");
    let made = development(&kept).unwrap();
    let again = development(&kept).unwrap();
    assert!(made.is_new && !again.is_new);
    assert_eq!(
        (made.fingerprint.len(), &made.fingerprint),
        (95, &again.fingerprint)
    );
    let settings = Settings {
        identities: vec![IdentityFiles {
            certificate: made.certificate.clone(),
            key: made.key,
        }],
        ..Settings::default()
    };
    let server = Server::load(settings, Tickets::new(0)).unwrap();
    assert_eq!(server.warnings(), [""; 0]);
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&made.certificate).unwrap())
        .unwrap();
    for name in ["localhost", "127.0.0.1", "::1"] {
        let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        Pair::new(&server, client, name).established();
    }
    // One that is spoilt is made anew.
    fs::write(&made.certificate, "").unwrap();
    assert!(development(&kept).unwrap().is_new);
}
