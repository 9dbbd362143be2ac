//! What tests and fuzz targets of the protocol crates share.
//!
//! - [`transcript`]: the vectors' file format, `vectors/**/*.t`.
//! - [`replay`]: replays a transcript against a [`citius_h1::Connection`], whole or cut anywhere.
//! - [`driver`]: the reactor's part without sockets: pieces of input, virtual time, an application.
//! - [`responses`]: a reader of HTTP/1.1 responses that shares no code with the server.
//! - [`client`]: responses against the client's half of HTTP/1.1: transcripts and campaigns.
//! - [`campaign`]: arbitrary bytes, cuts and application behaviour, and what must hold all the same.
//! - [`variants`]: runs of requests that resemble each other.
//! - [`fast_paths`]: the fast paths of a connection against its slow ones.
//! - [`forms`]: multipart forms in any cut, against a naive reader.
//! - [`http2_client`]: scripts of what a server of HTTP/2 sends to a client, in any cut.
//! - [`http3`]: scripts of what a client of HTTP/3 does on its streams, in any cut.
//! - [`pg_calls`]: calls of a session of PostgreSQL without Python, and a client of them.
//! - [`pg_messages`]: messages of PostgreSQL as a server writes and reads them.
//! - [`pg_server`]: a model of a server of PostgreSQL.
//! - [`pg_session`]: calls on a session of PostgreSQL and what becomes of them, with such a server.
//! - [`postgres`]: a server of PostgreSQL that sends anything, in any cut.
//! - [`redis`]: replies of Redis in any cut, against what they were made from.
//! - [`search`]: what programs that search for inputs that break an invariant have in common.
//! - [`rng`]: the same random numbers for the same seed.

pub mod campaign;
pub mod client;
pub mod driver;
pub mod fast_paths;
pub mod forms;
pub mod http2_client;
pub mod http3;
pub mod pg_calls;
pub mod pg_messages;
pub mod pg_server;
pub mod pg_session;
pub mod postgres;
pub mod redis;
pub mod replay;
pub mod responses;
pub mod rng;
pub mod search;
pub mod transcript;
pub mod variants;
