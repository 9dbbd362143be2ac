//! Listeners in clear text that only send their clients to HTTPS.
//!
//! A request gets a 308 to the same path and query under `https://`, if a certificate is good for the host it names;
//! other hosts get a 421, so that no request makes the server name a host that is not its own. Requests of authorities
//! that issue certificates are served in clear text (RFC 8555 §8.3). Tests: `tests/tls/test_redirects.py`.

use citius_http::{Action, Fields, Head, Payload, ResponseHead, Status};

use crate::conn::Conn;
use crate::reactor::Reactor;

/// Where authorities look for the answers to challenges (RFC 8555 §8.3).
const CHALLENGES: &[u8] = b"/.well-known/acme-challenge/";

impl Reactor {
    /// Responds to a request of a listener that redirects, or returns its head if it is served here after all.
    #[cold]
    pub(crate) fn redirect(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        head: Box<Head>,
    ) -> Option<Box<Head>> {
        let serves = self.tls.as_ref().is_some_and(|tls| tls.has_challenges());
        if serves && head.path().starts_with(CHALLENGES) {
            return Some(head);
        }
        self.send_elsewhere(conn, stream, head);
        None
    }

    fn send_elsewhere(&mut self, conn: &mut Conn, stream: u32, head: Box<Head>) {
        let host = head.field(b"host").and_then(host_of);
        let covered = host.filter(|host| {
            let name = host.trim_start_matches('[').trim_end_matches(']');
            self.tls.as_ref().is_some_and(|tls| tls.covers(name))
        });
        let mut fields = Fields::default();
        let mut text: &[u8] = b"";
        let mut status = 308;
        let location = covered.map(|host| location(host, conn.redirect_port, &head));
        if location.is_none_or(|location| fields.push(b"location", &location).is_err()) {
            (status, text) = (421, b"no certificate of this server is for this host");
        }
        let status = Status::new(status).expect("one of the two above");
        let response = ResponseHead {
            fields: &fields,
            ..ResponseHead::text(status)
        };
        let mut reply = self.reply(conn, stream);
        // Refused only when the connection is being cut already.
        let _ = reply.send(Action::Respond(response, Payload::Copied(text)));
        reply.recycle(head);
    }
}

/// The host that a field `host` names, without its port; an address of IPv6 in its brackets.
fn host_of(value: &[u8]) -> Option<&str> {
    let value = std::str::from_utf8(value).ok()?;
    let (host, port) = match value.find(']') {
        Some(end) => value.split_at(end + 1),
        None => value.split_at(value.find(':').unwrap_or(value.len())),
    };
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(host)
}

fn location(host: &str, port: u16, head: &Head) -> Vec<u8> {
    let mut location = format!("https://{host}").into_bytes();
    if port != 443 {
        location.extend_from_slice(format!(":{port}").as_bytes());
    }
    // The target of `OPTIONS *` is no path.
    let path = head.path();
    location.extend_from_slice(if path.starts_with(b"/") { path } else { b"/" });
    if head.query.is_some() {
        location.push(b'?');
        location.extend_from_slice(head.query());
    }
    location
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_without_their_ports() {
        for (value, expected) in [
            ("example.org", Some("example.org")),
            ("example.org:80", Some("example.org")),
            ("[::1]:80", Some("[::1]")),
            ("[::1]", Some("[::1]")),
            ("example.org:80@evil.example", None),
            ("example.org:", Some("example.org")),
            ("[::1]evil.example", None),
        ] {
            assert_eq!(host_of(value.as_bytes()), expected, "{value}");
        }
    }
}
