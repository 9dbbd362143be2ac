//! What trusted proxies say of a request: `Forwarded` (RFC 7239) or `X-Forwarded-*` in, an
//! [`Origin`](citius_http::Origin) out.
//!
//! Two questions, in this order. Is the *peer* of the connection believed ([`Proxies::trusts`], asked once a
//! connection)? Then what does it say of this request ([`Proxies::apply`])? Any client can send these fields, so a
//! list is read from its right end, which the trusted peer has written, and no further than the first hop
//! that is not trusted itself: what stands left of it is that hop's word.
//!
//! A field that is not what it should be, as far as it has to be read, is ignored as a whole. Names come
//! one at a time in [`Names`], for a proxy passes on those that it does not know: believing a field that
//! the proxy does not write is believing the client.
//!
//! Sans-IO, and nothing is allocated for a head without such fields. `network.rs`: who is trusted;
//! `list.rs`: lists from their right ends; `node.rs`: addresses, hosts, ports, prefixes. `proxy_header.rs`: what a proxy
//! says that passes on bytes and knows no HTTP. `onward.rs`: the other direction, what of a request and its response is not passed on.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::arithmetic_side_effects)
)]

extern crate alloc;

mod list;
mod network;
mod node;
mod onward;
mod proxies;
mod proxy_header;

pub use network::Network;
pub use onward::{is_of_connection, is_of_gateways, is_same_loosely, leaves_its_place, options};
pub use proxies::{Names, Proxies};
pub use proxy_header::{Ends, PROXY_HEADER_BYTES_MAX, Progress, read_proxy_header};
