//! The structs of the header, as handlers see them.

pub use citius_abi::{
    Bytes, Chan, Conn, Context, Engine, Field, HttpRequest, HttpResponse, Opaque, PgValue, Reply,
    Rows, Text, Tls, Value, WaitGroup,
};

/// The bytes of a text of the server's.
///
/// Only handed out bounded by what the text belongs to: the call, or the object it was read from.
pub(crate) fn bytes<'a>(text: Text) -> &'a [u8] {
    // SAFETY: the server's texts are readable for their size while what they belong to lasts.
    unsafe { text.bytes() }
}

pub type Api = citius_abi::Api<Opaque>;
pub type Request = citius_abi::Request<Opaque>;
pub type Response = citius_abi::Response<Opaque>;
pub type Case = citius_abi::Case<Opaque>;
