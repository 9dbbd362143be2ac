//! Redis' protocol RESP3, client side: bytes in, values out; commands in, bytes out.
//!
//! A [`Connection`] is a value: it opens no socket, reads no clock and starts nothing. Commands may follow one another without
//! waiting; their replies come in the same order. [`traits_of`] says how a command may share a connection with others and
//! which of its arguments are keys; [`slot_of`] and [`Redirect`] are what a cluster needs.
//!
//! [`Outgoing`] keeps the calls of a connection in the order of their replies, [`Cache`] replies until the server says that they have
//! changed, or until their [`Lifetime`] is over.
//!
//! Protocol: the RESP3 specification, `redis/docs/reference/protocol-spec`. Servers: Redis from 6.0, Valkey.
//!
//! Invariants:
//! - parse(whole) == parse(any cut): how the bytes were split up never shows.
//! - A length that a server announces allocates nothing. Nothing recurses: a nested reply takes no stack.
//! - What one reply may cost is bounded ([`REPLY_BYTES_MAX`], [`DEPTH_MAX`], [`LINE_BYTES_MAX`]).
//! - After a fault nothing more is read: what the server meant is unknown from there on.
//! - A reply belongs to the command that has waited longest; a reply that no command waits for is a fault.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cache;
mod command;
mod connection;
mod fault;
mod lifetime;
mod login;
mod outgoing;
mod reader;
mod slots;

#[cfg(test)]
mod tests;

pub use cache::{Cache, CacheLimits, cached_by};
pub use command::{
    CachedBy, KeyPosition, Manner, Spread, Traits, Words, append_command, append_head, append_word,
    key_of, manner_of, slots_of, spread_of, traits_of,
};
pub use connection::{Connection, Event, Server};
pub use fault::Fault;
pub use lifetime::{KEYS_ASKED_MAX, Lifetime};
pub use login::{Login, Tracking};
pub use outgoing::{Keep, OUTGOING_BYTES_MAX, Outgoing, Request};
pub use reader::{DEPTH_MAX, Item, LINE_BYTES_MAX, REPLY_BYTES_MAX, Reader, VALUE_BYTES, Value};
pub use slots::{Redirect, SLOTS, slot_of};
