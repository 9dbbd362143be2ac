//! What only Linux has: sockets of a reactor's own and the kernel's poller. No value of these types exists, so no code that has one
//! is ever run.

use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use citius_http::{Millis, Output};
use citius_quic::{EcnCodepoint, Transmit};

use crate::id::{ConnectionId, Peer};
use crate::portable::{Errno, Result};
use crate::readiness::{OutgoingReady, Readiness, Ready};

/// A socket of a reactor's own.
#[derive(Debug)]
pub enum Socket {}

/// A set of outgoing connections.
#[derive(Debug)]
pub(crate) enum OutgoingEpoll {}

impl OutgoingEpoll {
    pub(crate) fn new() -> Result<Self> {
        Err(Errno::OPNOTSUPP)
    }

    pub(crate) fn add(&self, _: &Socket, _: u64) -> Result<()> {
        match *self {}
    }

    pub(crate) fn remove(&self, _: &Socket) {
        match *self {}
    }

    pub(crate) fn collect(&self, _: &mut Vec<OutgoingReady>, _: bool) -> Result<()> {
        match *self {}
    }
}

/// A timer that several pollers watch.
#[derive(Debug)]
pub(crate) enum Alarm {}

impl Alarm {
    pub(crate) fn new() -> Result<Self> {
        Err(Errno::OPNOTSUPP)
    }

    pub(crate) fn fired(&mut self) {
        match *self {}
    }

    pub(crate) fn arm(&mut self, _: u64) -> bool {
        match *self {}
    }
}

/// The kernel's poller.
#[derive(Debug)]
pub(crate) enum Epoll {}

/// What wakes it.
#[derive(Debug)]
pub(crate) enum Wakeup {}

/// A descriptor in reserve.
#[derive(Debug)]
pub(crate) enum Spare {}

impl Socket {
    pub(crate) fn connecting(_: std::net::SocketAddr) -> Result<Self> {
        Err(Errno::OPNOTSUPP)
    }

    pub(crate) fn taken_error(&self) -> Result<()> {
        match *self {}
    }

    pub(crate) fn is_quiet(&self) -> bool {
        match *self {}
    }

    pub(crate) fn recv(&self, _buffer: &mut [u8]) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn peek(&self, _buffer: &mut [u8]) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn recv_to(&self, _buffer: &mut [MaybeUninit<u8>]) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn send(&self, _bytes: &[u8]) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn send_pieces(&self, _output: &Output) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn shut_down(&self) {
        match *self {}
    }

    pub(crate) fn shut_down_write(&self) {
        match *self {}
    }

    pub(crate) fn reset_on_close(&self) {
        match *self {}
    }

    pub(crate) fn local(&self) -> Peer {
        match *self {}
    }

    pub(crate) fn prepare_listener(&self) -> Result<()> {
        match *self {}
    }
}

/// A UDP socket.
#[derive(Debug)]
pub(crate) enum DatagramSocket {}

/// Where datagrams go that are received.
#[derive(Debug)]
pub(crate) struct DatagramBuffers;

/// Datagrams of one sender.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) stride: usize,
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: Option<EcnCodepoint>,
}

/// What goes to another worker.
#[derive(Debug)]
pub(crate) struct Handing(Socket);

impl Handing {
    pub(crate) fn new(socket: Socket) -> Self {
        Self(socket)
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.0
    }

    pub(crate) fn hand_on(&self, _: &[u8]) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn take(&self, _: &mut [u8]) -> Result<usize> {
        match self.0 {}
    }
}

impl DatagramBuffers {
    pub(crate) fn new() -> Self {
        Self
    }
}

impl DatagramSocket {
    pub(crate) fn new(_: Socket) -> Result<Self> {
        Err(Errno::OPNOTSUPP)
    }

    pub(crate) fn socket(&self) -> &Socket {
        match *self {}
    }

    pub(crate) fn local(&self) -> SocketAddr {
        match *self {}
    }

    pub(crate) fn keeps_whole(&self) -> bool {
        match *self {}
    }

    pub(crate) fn run_max(&self) -> usize {
        match *self {}
    }

    pub(crate) fn receive(
        &self,
        _: &mut DatagramBuffers,
        _: impl FnMut(Arrived<'_>),
    ) -> Result<usize> {
        match *self {}
    }

    pub(crate) fn transmit(&self, _: &Transmit, _: &[u8]) -> Result<bool> {
        match *self {}
    }

    pub(crate) fn set_receive_buffer(&self, _: usize) -> usize {
        match *self {}
    }
}

pub(crate) fn accept(listener: &Socket) -> Result<(Socket, Peer)> {
    match *listener {}
}

impl Wakeup {
    pub(crate) fn wake(&self) {
        match *self {}
    }
}

impl Epoll {
    pub(crate) fn watch_alarm(&self, _: &Alarm, _: ConnectionId) -> Result<()> {
        match *self {}
    }

    pub(crate) fn new() -> Result<Self> {
        Err(Errno::OPNOTSUPP)
    }

    pub(crate) fn add(&self, _: &Socket, _: ConnectionId, _: Readiness) -> Result<()> {
        match *self {}
    }

    pub(crate) fn add_outgoing(&self, _: &OutgoingEpoll) -> Result<()> {
        match *self {}
    }

    pub(crate) fn add_shared_alarm(&self, _: &Alarm) -> Result<()> {
        match *self {}
    }

    pub(crate) fn modify(&self, _: &Socket, _: ConnectionId, _: Readiness) -> Result<()> {
        match *self {}
    }

    pub(crate) fn remove(&self, _: &Socket) {
        match *self {}
    }

    pub(crate) fn wait(&self, _: &mut Vec<Ready>, _: Option<Duration>) -> Result<()> {
        match *self {}
    }

    pub(crate) fn wakeup(&self) -> Result<Wakeup> {
        match *self {}
    }

    pub(crate) fn clear_wakeup(&self) {
        match *self {}
    }

    pub(crate) fn set_timer(&self, _wait_ms: Millis) -> bool {
        match *self {}
    }

    pub(crate) fn clear_timer(&self) {
        match *self {}
    }

    pub(crate) fn set_alarm(&mut self, _at_ns: u64) -> bool {
        match *self {}
    }

    pub(crate) fn alarm_fired(&mut self) {
        match *self {}
    }

    pub(crate) fn spare(&self) -> Option<Spare> {
        match *self {}
    }
}
