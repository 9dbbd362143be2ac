//! What the tests of a whole reactor share.

use citius_http::{Fields, Limits};
use citius_reactor::{Options, Protocols, Proxies};

/// Options of a reactor without an observer, whose responses get no fields but those of the service.
pub(crate) fn options(limits: Limits) -> Options {
    Options {
        limits,
        server: None,
        date: false,
        default_fields: Fields::EMPTY,
        observer: None,
        compression: None,
        proxies: Proxies::default(),
        protocols: Protocols::default(),
    }
}
