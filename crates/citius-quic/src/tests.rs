//! Handshakes, Retry and resets against `quinn-proto`'s own client, without a network.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use citius_http::Limits;
use citius_tls::{IdentityFiles, Server, Settings, Tickets, development};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, EndpointConfig, Event, Transmit,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::{Accepted, Allowance, Earned, Endpoint, From, Keys, Origin, Place, Received};

const SERVER: &str = "127.0.0.1:443";
const CLIENT: &str = "127.0.0.1:5555";

/// Takes every certificate.
#[derive(Debug)]
struct Trusting;

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// A server and a client's endpoint, and the datagrams between them.
struct Pair {
    now: Instant,
    server: Endpoint,
    client: quinn_proto::Endpoint,
    /// The latest connection that the client has begun.
    begun: Option<(ConnectionHandle, Connection)>,
    /// The latest that the server has.
    taken: Option<(ConnectionHandle, Connection)>,
    handshakes: usize,
    allowance: Option<Allowance>,
}

fn tls() -> Server {
    let directory = std::env::temp_dir().join(format!("citius-quic-{}", std::process::id()));
    let made = development(&directory).expect("a certificate");
    let settings = Settings {
        identities: vec![IdentityFiles {
            certificate: made.certificate,
            key: made.key,
        }],
        handshake_bytes_max: 32 * 1024,
        ..Settings::default()
    };
    Server::load(settings, Tickets::new(1_800_000_000)).expect("it fits")
}

fn endpoint(limits: &Limits, generation: u8) -> Endpoint {
    let place = Place {
        keys: Keys::new(&[7; 32]),
        origin: Origin {
            slot: 3,
            generation,
        },
        finds_mtu: false,
        logs: None,
    };
    Endpoint::new(place, tls().quic(&[b"h3"]).expect("TLS 1.3"), limits)
}

#[expect(clippy::disallowed_methods, reason = "a test has no reactor")]
fn pair(limits: &Limits) -> Pair {
    let reset = Arc::new(ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &[1; 32]));
    Pair {
        now: Instant::now(),
        server: endpoint(limits, 0),
        client: quinn_proto::Endpoint::new(Arc::new(EndpointConfig::new(reset)), None, true, None),
        begun: None,
        taken: None,
        handshakes: 0,
        allowance: None,
    }
}

fn client_config(protocols: &[&[u8]]) -> ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("it is supported")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Trusting))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    ClientConfig::new(Arc::new(
        QuicClientConfig::try_from(config).expect("it has AES"),
    ))
}

impl Pair {
    fn connect(&mut self, protocols: &[&[u8]]) {
        let server = SERVER.parse().expect("an address");
        let config = client_config(protocols);
        self.begun = Some(
            self.client
                .connect(self.now, config, server, "localhost")
                .expect("it begins"),
        );
    }

    fn from(&self, client: &str) -> From {
        let _ = self;
        From {
            remote: client.parse().expect("an address"),
            local: None,
            ecn: None,
            socket: 0,
        }
    }

    /// Datagrams of the client.
    fn of_client(&mut self) -> Vec<BytesMut> {
        let (_, connection) = self.begun.as_mut().expect("it has begun");
        datagrams(connection, self.now)
    }

    /// Gives the server a datagram; returns what it says at once, and what its connection does.
    fn ask_server(&mut self, datagram: BytesMut, client: &str) -> Vec<BytesMut> {
        let (from, mut out) = (self.from(client), Vec::new());
        let mut said = Vec::new();
        let received = self
            .server
            .receive(self.now, from, datagram, self.handshakes, &mut out);
        match received {
            Received::Response(transmit) => said.push(bytes_of(&transmit, &out)),
            Received::Connection(_, event) => {
                let (_, connection) = self.taken.as_mut().expect("it is known");
                connection.handle_event(event);
            }
            Received::Nothing | Received::Beginning => {}
        }
        while self.server.waiting() > 0 {
            let mut out = Vec::new();
            match self.server.accept(self.now, &mut out) {
                Some(Accepted::Connection(begun)) => {
                    self.allowance = Some(begun.allowance);
                    self.taken = Some((begun.handle, *begun.connection));
                }
                Some(Accepted::Failed(_, _, response, _)) => {
                    said.extend(response.map(|transmit| bytes_of(&transmit, &out)));
                }
                other => panic!("{other:?}"),
            }
        }
        if let Some((handle, connection)) = &mut self.taken {
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.server.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
            said.extend(datagrams(connection, self.now));
        }
        said
    }

    fn tell_client(&mut self, datagram: BytesMut) {
        let server: SocketAddr = SERVER.parse().expect("an address");
        let mut out = Vec::new();
        let event = self
            .client
            .handle(self.now, server, None, None, datagram, &mut out);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            let (handle, connection) = self.begun.as_mut().expect("it has begun");
            connection.handle_event(event);
            while let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.client.handle_event(*handle, event) {
                    connection.handle_event(event);
                }
            }
        }
    }

    /// Passes datagrams both ways until none is left; returns what has happened at the client.
    fn run(&mut self) -> Vec<Event> {
        for _ in 0..20 {
            let sent = self.of_client();
            if sent.is_empty() {
                self.now += Duration::from_millis(30);
            }
            for datagram in sent {
                for said in self.ask_server(datagram, CLIENT) {
                    self.tell_client(said);
                }
            }
        }
        let (_, connection) = self.begun.as_mut().expect("it has begun");
        std::iter::from_fn(|| connection.poll()).collect()
    }
}

fn datagrams(connection: &mut Connection, now: Instant) -> Vec<BytesMut> {
    let mut all = Vec::new();
    loop {
        let mut out = Vec::new();
        let Some(transmit) = connection.poll_transmit(now, 1, &mut out) else {
            return all;
        };
        all.push(bytes_of(&transmit, &out));
    }
}

fn bytes_of(transmit: &Transmit, out: &[u8]) -> BytesMut {
    BytesMut::from(&out[..transmit.size])
}

fn is_connected(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Connected))
}

#[test]
fn a_handshake_agrees_on_http_3_and_names_the_worker() {
    let mut pair = pair(&Limits::default());
    pair.connect(&[b"h3"]);
    assert!(is_connected(&pair.run()));
    let (_, connection) = pair.taken.as_ref().expect("a connection");
    let agreed = crate::agreed(connection).expect("it has begun");
    assert_eq!(agreed.protocol.as_deref(), Some(&b"h3"[..]));
    let facts = agreed.tls.expect("it is over");
    assert_eq!(facts.version_name(), "TLSv1.3");
    assert_eq!(facts.server_name.as_deref(), Some("localhost"));
    assert!(!facts.cipher_name.is_empty() && !facts.is_resumed);
    let (_, client) = pair.begun.as_mut().expect("a connection");
    client.ping();
    let datagrams = pair.of_client();
    let origin = pair.server.origin_of(&datagrams[0]);
    assert_eq!(origin, Some(pair.server.origin()));
}

#[test]
fn a_client_of_another_protocol_is_told_so() {
    let mut pair = pair(&Limits::default());
    pair.connect(&[b"hq-interop"]);
    let events = pair.run();
    assert!(!is_connected(&events));
    // RFC 9001 §8.1: no_application_protocol, 0x78.
    assert!(format!("{events:?}").contains("crypto(78)"), "{events:?}");
}

#[test]
fn from_some_handshakes_on_clients_prove_their_address() {
    let limits = Limits {
        quic_retry_handshakes: 2,
        ..Limits::default()
    };
    let mut pair = pair(&limits);
    pair.handshakes = 2;
    pair.connect(&[b"h3"]);
    let first = pair.of_client().remove(0);
    let length = first.len();
    let said = pair.ask_server(first, CLIENT);
    assert!(pair.taken.is_none(), "no connection before the proof");
    // RFC 9000 §17.2.5: a Retry is a long header of type 3, and far shorter than what it answers.
    assert_eq!(said[0][0] & 0xf0, 0xf0);
    assert!(said.len() == 1 && said[0].len() * 3 < length);
    pair.tell_client(said[0].clone());
    let second = pair.of_client().remove(0);
    // From another address the token proves nothing.
    pair.ask_server(second.clone(), "127.0.0.9:5555");
    assert!(pair.taken.is_none());
    pair.ask_server(second.clone(), CLIENT);
    assert!(pair.taken.is_some());
}

#[test]
fn a_retry_token_is_good_for_one_connection() {
    let limits = Limits {
        quic_retry_handshakes: 0,
        ..Limits::default()
    };
    let mut pair = pair(&limits);
    pair.connect(&[b"h3"]);
    let first = pair.of_client().remove(0);
    let retry = pair.ask_server(first, CLIENT).remove(0);
    pair.tell_client(retry);
    let second = pair.of_client().remove(0);
    assert!(!pair.ask_server(second.clone(), CLIENT).is_empty());
    let (handle, _) = pair.taken.take().expect("a connection");
    pair.server
        .handle_event(handle, quinn_proto::EndpointEvent::drained());
    // The connection is forgotten, and the token is within its lifetime.
    assert!(pair.ask_server(second, CLIENT).is_empty());
    assert!(pair.taken.is_none());
}

#[test]
fn beyond_the_handshakes_that_are_allowed_nothing_is_said_or_kept() {
    let limits = Limits {
        quic_handshakes_max: 1,
        ..Limits::default()
    };
    let mut pair = pair(&limits);
    pair.handshakes = 1;
    for _ in 0..50 {
        pair.connect(&[b"h3"]);
        let first = pair.of_client().remove(0);
        assert!(pair.ask_server(first, CLIENT).is_empty());
    }
    assert_eq!(pair.server.waiting(), 0);
    assert!(pair.taken.is_none());
}

/// What came for handshakes that waited for their turn, besides the datagrams that began them: as many as were kept.
fn kept_of_waiting(limits: &Limits, handshakes: usize) -> Vec<u64> {
    let mut pair = pair(limits);
    for _ in 0..handshakes {
        pair.connect(&[b"h3"]);
        let first = pair.of_client().remove(0);
        for _ in 0..40 {
            let (from, mut out) = (pair.from(CLIENT), Vec::new());
            let received = pair
                .server
                .receive(pair.now, from, first.clone(), 0, &mut out);
            assert!(matches!(received, Received::Nothing));
        }
    }
    assert_eq!(pair.server.waiting(), handshakes);
    let mut out = Vec::new();
    (0..handshakes)
        .map(|_| match pair.server.accept(pair.now, &mut out) {
            Some(Accepted::Connection(begun)) => begun.connection.stats().udp_rx.datagrams,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn little_is_kept_for_handshakes_that_wait() {
    let limits = |quic_handshakes_max| Limits {
        quic_handshakes_max,
        ..Limits::default()
    };
    // Datagrams of 1200 bytes, of which 8 KiB have room for six.
    assert_eq!(kept_of_waiting(&limits(4096), 3), [6, 6, 6]);
    // All of them together have a quarter of that each.
    assert_eq!(kept_of_waiting(&limits(8), 8).iter().sum::<u64>(), 13);
}

#[test]
fn a_handshake_that_is_too_long_has_failed() {
    let server = tls().quic(&[b"h3"]).expect("TLS 1.3");
    let mut session = server
        .session(rustls::quic::Version::V1, Vec::new())
        .expect("there is memory");
    // A ClientHello of 60 kB, of which the settings allow 32.
    session
        .receive(&[1, 0, 0xea, 0x60])
        .expect("it has only begun");
    for _ in 0..31 {
        session.receive(&[0; 1024]).expect("it goes on");
    }
    let (alert, _) = session.receive(&[0; 1024]).expect_err("it is too long");
    assert_eq!(alert, Some(50));
}

#[test]
fn before_the_address_is_proven_three_times_as_much_is_sent_at_the_most() {
    let mut pair = pair(&Limits::default());
    pair.connect(&[b"h3"]);
    let first = pair.of_client().remove(0);
    let received = first.len();
    let mut sent: usize = pair
        .ask_server(first, CLIENT)
        .iter()
        .map(BytesMut::len)
        .sum();
    let (_, connection) = pair.taken.as_mut().expect("a connection");
    // The client says nothing more: what is repeated counts too.
    for _ in 0..100 {
        pair.now += Duration::from_millis(500);
        connection.handle_timeout(pair.now);
        sent += datagrams(connection, pair.now)
            .iter()
            .map(BytesMut::len)
            .sum::<usize>();
    }
    assert!(sent <= 3 * received, "{sent} for {received}");
}

#[test]
fn an_allowance_ends_where_the_address_is_proven() {
    let mut pair = pair(&Limits::default());
    pair.connect(&[b"h3"]);
    let first = pair.of_client().remove(0);
    let received = first.len();
    let said = pair.ask_server(first, CLIENT);
    let mut allowance = pair.allowance.expect("it has begun");
    assert!(!allowance.spend(3 * received + 1) && allowance.spend(3 * received));
    assert!(!allowance.spend(1));
    for datagram in said {
        pair.tell_client(datagram);
    }
    // The client's next flight has a packet that proves it.
    for datagram in pair.of_client() {
        allowance.add(Earned::by(&datagram, CLIENT.parse().expect("an address")));
    }
    assert!(allowance.spend(usize::MAX));
}

#[test]
fn a_worker_that_follows_a_killed_one_resets_its_connections() {
    let mut pair = pair(&Limits::default());
    pair.connect(&[b"h3"]);
    assert!(is_connected(&pair.run()));
    pair.server = endpoint(&Limits::default(), 1);
    pair.taken = None;
    let (_, client) = pair.begun.as_mut().expect("a connection");
    client.ping();
    let datagram = pair.of_client().remove(0);
    let length = datagram.len();
    let said = pair.ask_server(datagram, CLIENT);
    assert!(said.len() == 1 && said[0].len() < length, "{said:?}");
    pair.tell_client(said[0].clone());
    let (_, client) = pair.begun.as_mut().expect("a connection");
    let events: Vec<Event> = std::iter::from_fn(|| client.poll()).collect();
    assert!(format!("{events:?}").contains("Reset"), "{events:?}");
}

#[test]
fn an_unknown_connection_id_gets_no_reset() {
    let mut pair = pair(&Limits::default());
    // An id that the server has not given out: no answer, however long the packet is.
    let mut datagram = BytesMut::zeroed(1200);
    datagram[0] = 0x40;
    for byte in 0..=255 {
        datagram[1] = byte;
        let origin = pair.server.origin_of(&datagram);
        let said = pair.ask_server(datagram.clone(), CLIENT);
        assert_eq!(said.is_empty(), origin.is_none());
    }
}

#[test]
fn a_closed_endpoint_leaves_clients_to_the_next() {
    let mut pair = pair(&Limits::default());
    pair.connect(&[b"h3"]);
    let first = pair.of_client().remove(0);
    pair.server.close();
    let (from, mut out) = (pair.from(CLIENT), Vec::new());
    let received = pair.server.receive(pair.now, from, first, 0, &mut out);
    assert!(matches!(received, Received::Beginning) && out.is_empty());
}

#[test]
fn suites_without_tls_1_3_are_refused_at_the_start() {
    let server = tls();
    assert!(server.quic(&[b"h3"]).is_ok());
    let directory = std::env::temp_dir().join(format!("citius-quic-{}", std::process::id()));
    let made = development(&directory).expect("a certificate");
    let settings = Settings {
        identities: vec![IdentityFiles {
            certificate: made.certificate,
            key: made.key,
        }],
        ciphers: Some("TLS_CHACHA20_POLY1305_SHA256".into()),
        handshake_bytes_max: 32 * 1024,
        ..Settings::default()
    };
    let chacha = Server::load(settings, Tickets::new(1_800_000_000)).expect("it fits");
    assert!(
        chacha.quic(&[b"h3"]).is_ok(),
        "the initial keys need no choice"
    );
}
