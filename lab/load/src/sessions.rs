//! The sessions of the server of a run, for handshakes that resume one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Keeps as many tickets as connections may want at once.
///
/// rustls' own store keeps eight for each server, a ticket serves once (RFC 8446, appendix C.4), and a quick server lets many
/// connections end in one turn: from the ninth on they would begin anew. One server is all that a run has.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    /// The newest at the back.
    tickets: VecDeque<Tls13ClientSessionValue>,
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        self.known().group = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        self.known().group
    }

    fn set_tls12_session(&self, _: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.known().session = Some(session);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.known().session.clone()
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.known().session = None;
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut known = self.known();
        if known.tickets.len() == TICKETS_MAX {
            known.tickets.pop_front();
        }
        known.tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.known().tickets.pop_back()
    }
}

const TICKETS_MAX: usize = 1024;
