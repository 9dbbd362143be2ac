//! Every rule of the protocol that a peer can break, as one flat list.

use crate::Code;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $code:ident, $spec:literal, $text:literal;)+) => {
        /// A broken rule. After it the connection understands no further byte.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fault { $($(#[$doc])* $name,)+ }

        impl Fault {
            /// All faults, so that a test can demand a case for each.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The code that the connection is closed with.
            pub const fn code(self) -> Code {
                match self { $(Self::$name => Code::$code,)+ }
            }

            /// Where the rule stands.
            pub const fn spec(self) -> &'static str {
                match self { $(Self::$name => $spec,)+ }
            }

            /// What was broken: lower case, no full stop; the reason of the close frame.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }
        }
    };
}

faults! {
    /// A reserved bit that no extension has given a meaning.
    ReservedBits = PROTOCOL_ERROR, "RFC 6455 §5.2", "reserved bit is set";
    /// An opcode without a meaning.
    Opcode = PROTOCOL_ERROR, "RFC 6455 §5.2", "unknown opcode";
    /// A client's frame without a mask.
    Unmasked = PROTOCOL_ERROR, "RFC 6455 §5.1", "frame is not masked";
    /// A length that a shorter form could say, or one with its highest bit set.
    Length = PROTOCOL_ERROR, "RFC 6455 §5.2", "length is not in its shortest form";
    /// A control frame in fragments.
    FragmentedControl = PROTOCOL_ERROR, "RFC 6455 §5.5", "control frame is fragmented";
    /// A control frame of more than 125 bytes.
    LongControl = PROTOCOL_ERROR, "RFC 6455 §5.5", "control frame is too long";
    /// A continuation of nothing.
    Continuation = PROTOCOL_ERROR, "RFC 6455 §5.4", "continuation without a message";
    /// A message inside another.
    Interleaved = PROTOCOL_ERROR, "RFC 6455 §5.4", "message begins inside another";
    /// A close frame with a code that must not be sent, half a code, or a reason that is not UTF-8.
    ClosePayload = PROTOCOL_ERROR, "RFC 6455 §7.4", "close frame is malformed";
    /// Text that is not UTF-8.
    Text = INVALID_DATA, "RFC 6455 §8.1", "text is not UTF-8";
    /// Data that cannot be inflated.
    Deflate = INVALID_DATA, "RFC 7692 §7.2.2", "compressed data is malformed";
    /// A message larger than `ws_message_bytes_max`, as sent or inflated.
    TooLarge = TOO_LARGE, "RFC 6455 §7.4.1", "message is too large";
    /// A message in more fragments than `ws_fragments_max`.
    TooManyFragments = POLICY, "RFC 6455 §7.4.1", "message has too many fragments";
    /// More messages than `ws_messages_max` within `ws_rate_ms`.
    TooManyMessages = POLICY, "RFC 6455 §7.4.1", "messages come too fast";
    /// More control frames than `ws_controls_max` within `ws_rate_ms`.
    TooManyControls = POLICY, "RFC 6455 §7.4.1", "control frames come too fast";
    /// No sign of life within `ws_ping_timeout_ms` of a ping.
    PingTimeout = SERVER_ERROR, "RFC 6455 §5.5.2", "keepalive ping timeout";
}
