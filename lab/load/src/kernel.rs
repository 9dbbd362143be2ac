//! What the kernel counted meanwhile: dropped connection requests and repeated segments.
//!
//! A listener whose queue is full drops SYNs; clients repeat them after 1, 3, 7 s, and a run shows
//! latencies of just that size. The counters are those of the network namespace, so they include
//! what others did; a server on the same machine is included as well.

use serde::{Deserialize, Serialize};

/// Counters of a network namespace, or what they grew by.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq)]
pub(crate) struct Network {
    pub(crate) syn_retransmits: u64,
    pub(crate) retransmitted_segments: u64,
    pub(crate) listen_overflows: u64,
    pub(crate) listen_drops: u64,
}

impl Network {
    /// `None` where the kernel does not tell.
    pub(crate) fn read() -> Option<Self> {
        let read = |name| std::fs::read_to_string(name).ok();
        Self::parse(&(read("/proc/net/netstat")? + &read("/proc/net/snmp")?))
    }

    /// Pairs of lines: `TcpExt: NAME NAME…`, `TcpExt: VALUE VALUE…`.
    fn parse(text: &str) -> Option<Self> {
        let value = |group: &str, name: &str| -> Option<u64> {
            let mut lines = text
                .lines()
                .filter_map(|line| line.strip_prefix(group)?.strip_prefix(": "));
            let (names, values) = (lines.next()?, lines.next()?);
            let mut pairs = names.split(' ').zip(values.split(' '));
            pairs.find(|(n, _)| *n == name)?.1.parse().ok()
        };
        Some(Self {
            syn_retransmits: value("TcpExt", "TCPSynRetrans")?,
            retransmitted_segments: value("Tcp", "RetransSegs")?,
            listen_overflows: value("TcpExt", "ListenOverflows")?,
            listen_drops: value("TcpExt", "ListenDrops")?,
        })
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            syn_retransmits: self.syn_retransmits.saturating_sub(earlier.syn_retransmits),
            retransmitted_segments: self
                .retransmitted_segments
                .saturating_sub(earlier.retransmitted_segments),
            listen_overflows: self
                .listen_overflows
                .saturating_sub(earlier.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(earlier.listen_drops),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn counters_are_found_by_name() {
        let text = "TcpExt: ListenDrops X TCPSynRetrans ListenOverflows\nTcpExt: 3 9 5 2\n\
                    IpExt: ListenDrops\nIpExt: 77\nTcp: A RetransSegs\nTcp: -1 8\n";
        let expected = Network {
            syn_retransmits: 5,
            retransmitted_segments: 8,
            listen_overflows: 2,
            listen_drops: 3,
        };
        assert_eq!(Network::parse(text), Some(expected));
        assert_eq!(Network::parse(""), None);
        assert_eq!(expected.since(expected), Network::default());
    }

    #[test]
    fn this_kernel_tells() {
        assert!(Network::read().is_some());
    }
}
