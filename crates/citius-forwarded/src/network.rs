//! Peers, by address.

use core::net::{IpAddr, SocketAddr};

/// Some peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// All of them.
    Any,
    /// Peers that connect through a Unix socket.
    Local,
    /// Those whose addresses begin with the same so many bits.
    Of(IpAddr, u8),
}

impl Network {
    /// The network spelled `text`: an address, an address and a length in bits, `unix`, or `*`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "*" => return Some(Self::Any),
            "unix" => return Some(Self::Local),
            _ => {}
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => bits.parse().ok()?,
            Some(_) => return None,
        };
        (bits <= most).then_some(Self::Of(address, bits))
    }

    /// Whether `peer` (`None`: a Unix socket) is one of them. An IPv4 address in an IPv6 one is itself.
    pub fn has(&self, peer: Option<SocketAddr>) -> bool {
        match (self, peer.map(|peer| peer.ip().to_canonical())) {
            (Self::Any, _) | (Self::Local, None) => true,
            (Self::Of(IpAddr::V4(net), bits), Some(IpAddr::V4(ip))) => {
                let host_bits = 32u32.saturating_sub(u32::from(*bits));
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                (net.to_bits() ^ ip.to_bits()) & mask == 0
            }
            (Self::Of(IpAddr::V6(net), bits), Some(IpAddr::V6(ip))) => {
                let host_bits = 128u32.saturating_sub(u32::from(*bits));
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                (net.to_bits() ^ ip.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_who_belongs_to_it() {
        for (network, peer, belongs) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("127.0.0.1", "::ffff:127.0.0.1", true),
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.1.2.3/8", "10.9.9.9", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("2001:db8::1", "2001:db8::1", true),
            ("*", "203.0.113.9", true),
            ("unix", "127.0.0.1", false),
        ] {
            let peer = SocketAddr::new(peer.parse().expect("an address"), 1);
            let network_of = Network::parse(network).expect("a network");
            assert_eq!(network_of.has(Some(peer)), belongs, "{network} {peer}");
        }
        assert!(Network::Local.has(None) && Network::Any.has(None));
        assert!(!Network::parse("0.0.0.0/0").expect("a network").has(None));
    }

    #[test]
    fn refuses_what_is_no_network() {
        for bad in [
            "",
            "localhost",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0/8",
            "[::1]",
            "10.0.0.1:80",
            "/run/proxy.sock",
            "fe80::1%eth0",
        ] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }
}
