//! What the reactor asks of the operating system, by one set of names: `linux/` on Linux, `portable/` everywhere else.
//!
//! Nothing outside of these two folders differs between systems. `portable/` has files and clocks of Rust's standard
//! library, and no sockets: there an event loop owns them, and the only poller is [`Hosted`](crate::hosted::Hosted).

#[cfg(target_os = "linux")]
pub use crate::linux::*;
#[cfg(not(target_os = "linux"))]
pub use crate::portable::*;
