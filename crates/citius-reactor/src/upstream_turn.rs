//! Connections to other servers in the turns of a reactor, in the same epoll set as those of clients.
//!
//! The service owns their protocol: it is given the bytes that come, and asked for those to send when a batch of events has
//! been served, so that all that the requests of the batch have to say to one server leaves in one write. Who connects,
//! and who tries again, is the service's business too.

use crate::id::ConnectionId;
use crate::reactor::Reactor;
use crate::readiness::{INDEX_UPSTREAM, Readiness};
use crate::service::Service;
use crate::system::{Errno, Result, Socket};
use crate::upstream::{Handed, SPARE_BYTES_MAX, Sending, Upstream, UpstreamId};

/// Reads of a connection that takes nothing more.
const LAST_READS: usize = 16;

/// Reads of a connection in a turn, as long as each fills the buffer.
const FULL_READS: usize = 4;

impl Reactor {
    /// Watches a connected socket, which does not block, under an identity that no other has.
    ///
    /// # Errors
    /// The kernel refuses to watch it.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unreachable_code, reason = "no socket exists there")
    )]
    pub fn attach_upstream(&mut self, id: UpstreamId, socket: Socket) -> Result<()> {
        self.poller.add(&socket, token(id), Readiness::IN)?;
        let place = self.upstreams.position(id).unwrap_or_else(|place| place);
        self.upstreams.open.insert(place, Upstream::new(id, socket));
        Ok(())
    }

    /// Forgets a socket, which the service has closed or watches elsewhere; returns what it has not sent.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unreachable_code, unused_variables, reason = "no socket exists there")
    )]
    pub fn detach_upstream(&mut self, id: UpstreamId) -> Vec<u8> {
        let Ok(at) = self.upstreams.position(id) else {
            return Vec::new();
        };
        let upstream = self.upstreams.open.remove(at);
        // Before it is closed: another process may hold the same socket open.
        self.poller.remove(&upstream.socket);
        upstream.output[upstream.sent..].to_vec()
    }

    /// A socket of theirs is ready.
    pub(crate) fn serve_upstream<S: Service>(
        &mut self,
        id: UpstreamId,
        flags: Readiness,
        service: &mut S,
    ) {
        let Some(upstream) = self.upstreams.get_mut(id) else {
            return;
        };
        if flags.contains(Readiness::OUT) {
            upstream.is_full = false;
            let is_late = std::mem::take(&mut upstream.is_late);
            let hears = upstream.interest.contains(Readiness::IN);
            self.write_upstream(id, &[], hears, service);
            if is_late {
                self.send_to_upstream(id, false, service);
            }
        }
        if flags.intersects(Readiness::IN | Readiness::HUP | Readiness::ERR) {
            let full = self.inbox.len();
            let mut n_full = 0;
            while n_full < FULL_READS && self.read_upstream(id, service) == full {
                n_full += 1;
                if !self.upstreams.hears(id) {
                    break;
                }
            }
            // What has come is passed on before it leaves the caches, and not when all connections have been read.
            if n_full > 0 {
                self.run_commands(service);
            }
        }
    }

    /// Reads once; how many bytes there were.
    fn read_upstream<S: Service>(&mut self, id: UpstreamId, service: &mut S) -> usize {
        // Writing may have ended it.
        let Ok(at) = self.upstreams.position(id) else {
            return 0;
        };
        match self.upstreams.open[at].read(&mut self.inbox) {
            // What is to go there may go on.
            Ok(0)
                if self.upstreams.open[at].sending != Sending::Ended
                    && service.upstream_finished(id) =>
            {
                self.watch_upstream(id, false, service);
            }
            Ok(0) => self.end_upstream(id, None, service),
            Ok(n) => {
                let inbox = std::mem::take(&mut self.inbox);
                let hears = service.upstream_received(id, &inbox[..n]);
                self.inbox = inbox;
                if !hears {
                    self.watch_upstream(id, false, service);
                }
                return n;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => self.end_upstream(id, Some(error), service),
        }
        0
    }

    /// Sends what the service has for them.
    #[inline]
    pub(crate) fn flush_upstreams<S: Service>(&mut self, service: &mut S) {
        if !self.upstreams.open.is_empty() {
            self.flush_open_upstreams(service);
        }
    }

    fn flush_open_upstreams<S: Service>(&mut self, service: &mut S) {
        while let Some((id, looks_first)) = service.next_unsent_upstream() {
            self.send_to_upstream(id, looks_first, service);
        }
    }

    /// Sends what the service has for one of them. With `looks_first` what has come is read before: it may say that the peer takes
    /// nothing more. One that is not attached yet is served when it is.
    pub fn send_to_upstream<S: Service>(
        &mut self,
        id: UpstreamId,
        looks_first: bool,
        service: &mut S,
    ) {
        let Some(upstream) = self.upstreams.get_mut(id) else {
            return;
        };
        // A socket that is full is written to, and what is added stays with the service, which can hold back its source.
        if upstream.is_full {
            upstream.is_late = true;
            return;
        }
        if looks_first && !upstream.socket.is_quiet() {
            self.read_upstream(id, service);
            if self.upstreams.position(id).is_err() {
                return;
            }
        }
        let mut bytes = std::mem::take(&mut self.upstreams.spare);
        bytes.clear();
        let Handed { hears, is_last } = service.take_upstream_output(id, &mut bytes);
        if let (true, Some(upstream)) = (is_last, self.upstreams.get_mut(id))
            && upstream.sending == Sending::Open
        {
            upstream.sending = Sending::Ending;
        }
        self.write_upstream(id, &bytes, hears, service);
        bytes.clear();
        bytes.shrink_to(SPARE_BYTES_MAX);
        self.upstreams.spare = bytes;
    }

    fn write_upstream<S: Service>(
        &mut self,
        id: UpstreamId,
        bytes: &[u8],
        hears: bool,
        service: &mut S,
    ) {
        let Some(upstream) = self.upstreams.get_mut(id) else {
            return;
        };
        if let Err(error) = upstream.write(bytes) {
            // What the peer has said before it left says why.
            let _ = (0..LAST_READS).all(|_| self.read_upstream(id, service) > 0);
            if self.upstreams.position(id).is_ok() {
                self.end_upstream(id, Some(error), service);
            }
            return;
        }
        upstream.is_full = !upstream.output.is_empty();
        if upstream.sending == Sending::Ending && !upstream.is_full {
            upstream.sending = Sending::Ended;
            upstream.socket.shut_down_write();
        }
        self.watch_upstream(id, hears, service);
    }

    /// Has the kernel report what a connection waits for.
    fn watch_upstream<S: Service>(&mut self, id: UpstreamId, hears: bool, service: &mut S) {
        let Some(upstream) = self.upstreams.get_mut(id) else {
            return;
        };
        let mut interest = Readiness::empty();
        interest.set(Readiness::IN, hears);
        interest.set(Readiness::OUT, upstream.is_full);
        if std::mem::replace(&mut upstream.interest, interest) == interest {
            return;
        }
        let watched = self.poller.modify(&upstream.socket, token(id), interest);
        if let Err(error) = watched {
            self.end_upstream(id, Some(error), service);
        }
    }

    fn end_upstream<S: Service>(&mut self, id: UpstreamId, error: Option<Errno>, service: &mut S) {
        self.detach_upstream(id);
        service.upstream_closed(id, error);
    }
}

fn token(id: UpstreamId) -> ConnectionId {
    ConnectionId {
        index: INDEX_UPSTREAM,
        generation: id,
    }
}
