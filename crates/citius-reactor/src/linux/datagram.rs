//! Sockets of datagrams: UDP with what QUIC needs of the kernel, and Unix sockets by which workers hand on what is another's.
//!
//! One call receives what has come, up to 64 datagrams of a sender in one piece (GRO), and one call sends a run of equally
//! long ones (GSO). `quinn-udp` knows the control messages of that.

use std::cell::RefCell;
use std::io::IoSliceMut;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use citius_quic::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::io::{Errno, Result};
use rustix::net::sockopt::{set_socket_recv_buffer_size, socket_recv_buffer_size};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::linux::Socket;

/// Calls of one sender's datagrams that one call of the kernel receives.
const BATCH: usize = 8;
/// Bytes that one of them takes at most.
const PIECE_BYTES: usize = 64 * 1024;

/// A UDP socket.
#[derive(Debug)]
pub(crate) struct DatagramSocket {
    socket: Socket,
    state: RefCell<UdpSocketState>,
    local: SocketAddr,
}

/// Where datagrams go that are received.
#[derive(Debug)]
pub(crate) struct DatagramBuffers(Box<[u8]>);

/// Datagrams of one sender: all as long as `stride`, but for the last.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) stride: usize,
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
}

impl DatagramBuffers {
    pub(crate) fn new() -> Self {
        // Pages that are not written to are none.
        Self(vec![0; BATCH * PIECE_BYTES].into_boxed_slice())
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl DatagramSocket {
    /// Takes over a socket that is bound.
    pub(crate) fn new(socket: Socket) -> Result<Self> {
        let Some(local) = socket.local().address() else {
            return Err(Errno::AFNOSUPPORT);
        };
        let state = UdpSocketState::new((&socket).into()).map_err(|error| errno(&error))?;
        Ok(Self {
            socket,
            state: RefCell::new(state),
            local,
        })
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The address that it is bound to.
    pub(crate) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether datagrams leave in one piece or not at all.
    pub(crate) fn keeps_whole(&self) -> bool {
        !self.state.borrow().may_fragment()
    }

    /// Datagrams of one size that one call may send.
    pub(crate) fn run_max(&self) -> usize {
        self.state.borrow().max_gso_segments()
    }

    /// Receives what has come, as far as one call can, and passes it to `take`; returns how many pieces.
    pub(crate) fn receive(
        &self,
        buffers: &mut DatagramBuffers,
        mut take: impl FnMut(Arrived<'_>),
    ) -> Result<usize> {
        let mut meta = [RecvMeta::default(); BATCH];
        let mut pieces = buffers.0.chunks_mut(PIECE_BYTES).map(IoSliceMut::new);
        let mut pieces: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| pieces.next().expect("as many as there are"));
        let n = self
            .state
            .borrow()
            .recv((&self.socket).into(), &mut pieces, &mut meta)
            .map_err(|error| errno(&error))?;
        for (piece, meta) in pieces.iter().zip(&meta).take(n) {
            take(Arrived {
                bytes: piece.get(..meta.len).unwrap_or_default(),
                stride: meta.stride.max(1),
                remote: meta.addr,
                local: meta.dst_ip,
                ecn: meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
            });
        }
        Ok(n)
    }

    /// Sends what `transmit` describes of `bytes`. `false`: the way to its destination takes no runs, as those through tunnels
    /// and other devices that leave checksums to the kernel; each datagram was sent by itself.
    ///
    /// # Errors
    /// `EAGAIN`: the socket takes nothing more now. With every other error the datagrams are lost, as they may be on their way.
    pub(crate) fn transmit(&self, transmit: &Transmit, bytes: &[u8]) -> Result<bool> {
        let bytes = bytes.get(..transmit.size).unwrap_or(bytes);
        let sent = self.send(transmit, bytes, transmit.segment_size);
        let Err(error @ (Errno::IO | Errno::INVAL)) = sent else {
            return sent.map(|()| true);
        };
        let run = transmit
            .segment_size
            .filter(|each| (1..bytes.len()).contains(each));
        for datagram in run.map(|each| bytes.chunks(each)).into_iter().flatten() {
            // One for which there is no room now is lost, as on the network.
            let _ = self.send(transmit, datagram, None);
        }
        self.restore();
        run.map_or(Err(error), |_| Ok(false))
    }

    fn send(
        &self,
        transmit: &Transmit,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> Result<()> {
        let transmit = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit
                .ecn
                .and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents,
            segment_size,
            src_ip: transmit.src_ip,
        };
        self.state
            .borrow()
            .try_send((&self.socket).into(), &transmit)
            .map_err(|error| errno(&error))
    }

    /// After a failure `quinn-udp` would send no more runs to anyone, and no ECN. It may be of one client's way alone: that takes no
    /// runs, or the address of this machine that the client knows is gone.
    #[cold]
    fn restore(&self) {
        if let Ok(state) = UdpSocketState::new((&self.socket).into()) {
            self.state.replace(state);
        }
    }

    /// Has the kernel keep `bytes` of datagrams that were not received yet; returns how many it keeps.
    pub(crate) fn set_receive_buffer(&self, bytes: usize) -> usize {
        // The kernel gives what the system allows.
        let _ = set_socket_recv_buffer_size(&self.socket, bytes);
        socket_recv_buffer_size(&self.socket).unwrap_or_default()
    }
}

/// One end of a pair of Unix sockets over which datagrams go to another worker.
#[derive(Debug)]
pub(crate) struct Handing(Socket);

impl Handing {
    pub(crate) fn new(socket: Socket) -> Self {
        Self(socket)
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.0
    }

    /// Hands on `message`.
    ///
    /// # Errors
    /// `EAGAIN`: too many wait; otherwise the other worker has ended.
    pub(crate) fn hand_on(&self, message: &[u8]) -> Result<()> {
        send(&self.0, message, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map(|_| ())
    }

    /// Takes the next message; 0: no other worker is left.
    pub(crate) fn take(&self, buffer: &mut [u8]) -> Result<usize> {
        recv(&self.0, buffer, RecvFlags::DONTWAIT).map(|(_, n)| n)
    }
}

fn errno(error: &std::io::Error) -> Errno {
    error
        .raw_os_error()
        .map_or(Errno::IO, Errno::from_raw_os_error)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    use super::*;

    fn bound() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let set = socket.set_read_timeout(Some(Duration::from_secs(20)));
        set.expect("a time to wait");
        socket
    }

    fn datagrams(socket: UdpSocket) -> DatagramSocket {
        DatagramSocket::new(OwnedFd::from(socket).into()).expect("a UDP socket")
    }

    fn transmit(destination: SocketAddr, size: usize, each: usize) -> Transmit {
        Transmit {
            destination,
            ecn: Some(EcnCodepoint::Ect0),
            size,
            segment_size: Some(each),
            src_ip: None,
        }
    }

    #[test]
    fn what_fails_for_one_client_changes_nothing_for_others() {
        let (one, other) = (bound(), datagrams(bound()));
        let server = datagrams(bound());
        let run_max = server.run_max();
        let bytes = [7; 1500];

        // The kernel takes at most 128 datagrams in a run.
        let to = one.local_addr().expect("an address");
        let is_run = server.transmit(&transmit(to, 1500, 10), &bytes);
        assert_eq!(is_run, Ok(run_max == 1));
        for _ in 0..150 {
            assert_eq!(one.recv(&mut [0; 100]).expect("a datagram"), 10);
        }

        assert_eq!(server.run_max(), run_max);

        // No port is 0: a single datagram fails as one does whose source address is gone.
        let nowhere = transmit(SocketAddr::new(to.ip(), 0), 250, 1000);
        assert_eq!(server.transmit(&nowhere, &bytes), Err(Errno::INVAL));

        assert_eq!(server.run_max(), run_max);
        let is_run = server.transmit(&transmit(to, 250, 100), &bytes);
        assert_eq!(is_run, Ok(true));
        let sizes = [100, 100, 50].map(|_| one.recv(&mut [0; 200]).expect("a datagram"));
        assert_eq!(sizes, [100, 100, 50]);

        let alone = Transmit {
            segment_size: None,
            ..transmit(other.local(), 100, 0)
        };
        assert_eq!(server.transmit(&alone, &bytes), Ok(true));
        let mut ecn = None;
        let taken = other.receive(&mut DatagramBuffers::new(), |arrived| ecn = arrived.ecn);
        assert_eq!((taken, ecn), (Ok(1), Some(EcnCodepoint::Ect0)));
    }
}
