//! Every rule that a peer or an application can break, as one flat list.
//!
//! A fault is data: it knows whom to blame, which status answers it and where the rule stands.
//! Nothing here allocates; the sentence for people is made where it is logged or sent.

use crate::Status;

/// Who broke the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The client: answered with a 4xx or 5xx and a closed connection.
    Peer,
    /// Our caller, the application: logged as an error, answered with 500 while that is possible.
    App,
}

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $blame:ident, $status:literal, $spec:literal, $text:literal;)+) => {
        /// A broken rule. After one of a peer's the connection reads no further byte.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fault { $($(#[$doc])* $name,)+ }

        impl Fault {
            /// All faults, so that a test can demand a vector for each.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// Whose mistake it is.
            pub const fn blame(self) -> Blame {
                match self { $(Self::$name => Blame::$blame,)+ }
            }

            /// The status of the response to it.
            pub const fn status(self) -> Status {
                match self { $(Self::$name => Status::from_const($status),)+ }
            }

            /// Where the rule stands.
            pub const fn spec(self) -> &'static str {
                match self { $(Self::$name => $spec,)+ }
            }

            /// What was broken: lower case, no full stop.
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)+ }
            }

            /// What the client is told: which rule it broke; what is wrong with the application stays in the log.
            pub const fn told(self) -> &'static str {
                match self.blame() {
                    Blame::Peer => self.text(),
                    Blame::App => "internal server error",
                }
            }

            /// The name transcripts and logs use.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }
        }
    };
}

faults! {
    /// Not `method SP target SP version CRLF`.
    RequestLineSyntax = Peer, 400, "RFC 9112 §3", "request line is not method, target and version";
    /// The method is not a token.
    MethodSyntax = Peer, 400, "RFC 9110 §9.1", "method is not a token";
    /// The target has a byte that no form of it allows, or a form its method does not allow.
    TargetSyntax = Peer, 400, "RFC 9112 §3.2", "request target is malformed";
    /// Longer than `target_bytes_max`.
    TargetTooLong = Peer, 414, "RFC 9110 §15.5.15", "request target is too long";
    /// Not `HTTP/1.0` or `HTTP/1.1`, but an HTTP version.
    VersionUnsupported = Peer, 505, "RFC 9110 §15.6.6", "HTTP version is not supported here";
    /// Not an HTTP version at all.
    VersionSyntax = Peer, 400, "RFC 9112 §2.3", "HTTP version is malformed";
    /// A line ended by LF alone, or a CR that is not followed by LF.
    LineEnding = Peer, 400, "RFC 9112 §2.2", "line does not end in CRLF";
    /// Longer than `head_bytes_max`.
    HeadTooLong = Peer, 431, "RFC 6585 §5", "request head is too long";
    /// More field lines than `fields_max`.
    TooManyFields = Peer, 431, "RFC 6585 §5", "request head has too many fields";
    /// A field name that is not a token, or white space before its colon.
    FieldNameSyntax = Peer, 400, "RFC 9112 §5.1", "field name is malformed";
    /// A control byte in a field value.
    FieldValueSyntax = Peer, 400, "RFC 9110 §5.5", "field value is malformed";
    /// A field line that continues the one before it.
    LineFolding = Peer, 400, "RFC 9112 §5.2", "field line is folded";
    /// An HTTP/1.1 request without `Host`.
    HostMissing = Peer, 400, "RFC 9112 §3.2", "Host is missing";
    /// More than one `Host`.
    HostRepeated = Peer, 400, "RFC 9112 §3.2", "Host is repeated";
    /// `Host` is not `uri-host [ ":" port ]`.
    HostSyntax = Peer, 400, "RFC 9110 §7.2", "Host is malformed";
    /// `Content-Length` is not a run of decimal digits that fits 64 bits, or is repeated.
    ContentLengthSyntax = Peer, 400, "RFC 9112 §6.3", "Content-Length is malformed or repeated";
    /// Both `Content-Length` and `Transfer-Encoding`: two readings of one message.
    AmbiguousLength = Peer, 400, "RFC 9112 §6.3", "Content-Length and Transfer-Encoding contradict each other";
    /// `Transfer-Encoding` that is not exactly `chunked`, or is repeated.
    TransferEncoding = Peer, 400, "RFC 9112 §6.1", "Transfer-Encoding is not chunked alone";
    /// `Transfer-Encoding` in an HTTP/1.0 request.
    TransferEncodingInHttp10 = Peer, 400, "RFC 9112 §6.1", "Transfer-Encoding in HTTP/1.0";
    /// `Expect` asks for something other than `100-continue`.
    ExpectationUnknown = Peer, 417, "RFC 9110 §10.1.1", "expectation is not 100-continue";
    /// Announced or grown larger than `body_bytes_max`.
    BodyTooLong = Peer, 413, "RFC 9110 §15.5.14", "request body is too long";
    /// A chunk size that is not hexadecimal digits, or more of them than `chunk_size_digits_max`.
    ChunkSize = Peer, 400, "RFC 9112 §7.1", "chunk size is malformed or too long";
    /// A chunk extension with a control byte, or more of them than `chunk_extension_bytes_max`.
    ChunkExtension = Peer, 400, "RFC 9112 §7.1.1", "chunk extension is malformed or too long";
    /// Chunk data that is not followed by CRLF.
    ChunkEnd = Peer, 400, "RFC 9112 §7.1", "chunk data does not end where its size says";
    /// A trailer field that frames or routes the message (`Content-Length`, `Transfer-Encoding`, `Host`, …).
    TrailerForbidden = Peer, 400, "RFC 9110 §6.5.1", "field is not allowed in trailers";
    /// A trailer section longer than `trailer_bytes_max`.
    TrailersTooLong = Peer, 431, "RFC 6585 §5", "trailer section is too long";
    /// A method whose target takes over the connection.
    ConnectRefused = Peer, 501, "RFC 9110 §9.3.6", "CONNECT is not served here";
    /// The head did not arrive within `head_read_ms`.
    HeadTooSlow = Peer, 408, "RFC 9110 §15.5.9", "request head took too long";
    /// The body came slower than `body_rate_min_bytes_per_s`.
    BodyTooSlow = Peer, 408, "RFC 9110 §15.5.9", "request body came too slowly";
    /// The peer closed in the middle of a message.
    Truncated = Peer, 400, "RFC 9112 §8", "connection closed in the middle of a message";
    /// An HTTP/2 connection that does not begin with the client's preface.
    PrefaceSyntax = Peer, 400, "RFC 9113 §3.4", "connection preface is malformed";
    /// A frame longer than agreed, or of another length than its type has.
    FrameSize = Peer, 400, "RFC 9113 §4.2", "frame has a length it must not have";
    /// A frame that must not come here: between parts of a head, or on a stream it does not belong to.
    FrameSequence = Peer, 400, "RFC 9113 §5.1", "frame is out of order";
    /// A stream with an even number, or one that is not higher than those before it.
    StreamNumber = Peer, 400, "RFC 9113 §5.1.1", "stream number is out of order";
    /// A frame on a stream that its sender has ended.
    StreamClosed = Peer, 400, "RFC 9113 §5.1", "frame on a closed stream";
    /// More padding than frame.
    FramePadding = Peer, 400, "RFC 9113 §6.1", "padding is longer than its frame";
    /// A stream that depends on itself.
    PriorityCycle = Peer, 400, "RFC 7540 §5.3.1", "stream depends on itself";
    /// Priorities for more streams than `h2_streams_max`, those that are open included.
    PriorityExcess = Peer, 400, "RFC 9218 §7.1", "more streams have priorities than may be open";
    /// A setting with a value it can't have.
    SettingsValue = Peer, 400, "RFC 9113 §6.5.2", "setting has an impossible value";
    /// Settings were not acknowledged within `head_read_ms`.
    SettingsTimeout = Peer, 408, "RFC 9113 §6.5.3", "settings were not acknowledged";
    /// More data than the window allows, or a window opened beyond its limit or by nothing.
    FlowControl = Peer, 400, "RFC 9113 §5.2", "flow control window is violated";
    /// A field block that can't be decompressed.
    FieldCompression = Peer, 400, "RFC 7541 §3.1", "field block can't be decompressed";
    /// A pseudo-header field that is unknown, repeated, missing, or behind other fields.
    PseudoField = Peer, 400, "RFC 9113 §8.3", "pseudo-header fields are malformed";
    /// A field of HTTP/1.1's connections, or a `te` other than `trailers`.
    FieldForbidden = Peer, 400, "RFC 9113 §8.2.2", "field is not allowed in HTTP/2";
    /// `content-length` contradicts the data.
    LengthMismatch = Peer, 400, "RFC 9113 §8.1.1", "content-length contradicts the data";
    /// The client took its request back.
    StreamReset = Peer, 499, "RFC 9113 §6.4", "client has reset the stream";
    /// A window that was not opened for `write_stall_ms`, or by less than `h2_stall_bytes_min`.
    StreamStalled = Peer, 408, "RFC 9113 §10.5", "flow control window stays closed";
    /// One of the budgets against abuse is used up.
    ExcessiveLoad = Peer, 400, "RFC 9113 §10.5", "frames that only cost";
    /// Most requests end in a reset that is the client's doing.
    ExcessiveResets = Peer, 400, "RFC 9113 §10.5", "most requests end in a reset";
    /// A unidirectional stream of a kind that a client must not open, or a second one of its kind.
    StreamCreation = Peer, 400, "RFC 9114 §6.2", "stream of a kind that must not be opened, or not again";
    /// The control stream, or one of QPACK's, was closed.
    CriticalStreamClosed = Peer, 400, "RFC 9114 §6.2.1", "a stream that must stay open was closed";
    /// The control stream does not begin with SETTINGS.
    SettingsMissing = Peer, 400, "RFC 9114 §6.2.1", "control stream does not begin with settings";
    /// A stream that ended before its request did.
    RequestIncomplete = Peer, 400, "RFC 9114 §4.1", "request is incomplete";
    /// An identifier of a stream or a push that cannot be, or that grew where it must not.
    IdentifierOrder = Peer, 400, "RFC 9114 §8.1", "identifier is out of order";
    /// Instructions of the QPACK encoder that can't be read.
    EncoderStream = Peer, 400, "RFC 9204 §6", "instructions of the encoder can't be read";
    /// Instructions of the QPACK decoder that can't be read, or tell of what was never sent.
    DecoderStream = Peer, 400, "RFC 9204 §6", "instructions of the decoder can't be read";
    /// A datagram that belongs to no request that can be.
    DatagramSyntax = Peer, 400, "RFC 9297 §2.1", "datagram is malformed";
    /// A capsule that is malformed, or longer than it may be.
    CapsuleSyntax = Peer, 400, "RFC 9297 §3.3", "capsule is malformed";
    /// A message that is no call of a procedure, or whose bytes are none of its format.
    CallSyntax = Peer, 400, "MessagePack-RPC; JSON-RPC 2.0 §4", "message is no call";
    /// Longer than `rpc_message_bytes_max`.
    CallTooLong = Peer, 413, "MessagePack-RPC; JSON-RPC 2.0", "message is too long";
    /// Arrays and maps within each other, more than `rpc_depth_max`.
    CallTooDeep = Peer, 400, "MessagePack-RPC; JSON-RPC 2.0", "message is nested too deeply";
    /// A message that was not complete within `rpc_message_ms`.
    CallTooSlow = Peer, 408, "MessagePack-RPC; JSON-RPC 2.0", "message took too long to arrive";
    /// A call that was not answered within `rpc_call_ms`, or its procedure's own time.
    CallOverdue = Peer, 504, "MessagePack-RPC; JSON-RPC 2.0", "call took longer than it may";
    /// The caller took its call back.
    CallCancelled = Peer, 499, "MessagePack-RPC; JSON-RPC 2.0", "caller has cancelled the call";
    /// More connections than `connections_max`, or a full queue.
    Overloaded = Peer, 503, "RFC 9110 §15.6.4", "server is overloaded";
    /// A status outside 200…599 (100…199 for informational responses).
    ResponseStatus = App, 500, "RFC 9110 §15", "application's status is not one a server may send";
    /// A 2xx in response to an extended CONNECT, which is to be refused: it would grant the protocol that was asked for.
    ResponseGrants = App, 500, "RFC 8441 §5", "application refused a WebSocket or session with a status of success";
    /// A field name that is not a token.
    ResponseFieldName = App, 500, "RFC 9110 §5.1", "application's field name is not a token";
    /// A field value with CR, LF, NUL or another control byte.
    ResponseFieldValue = App, 500, "RFC 9110 §5.5", "application's field value has a control byte";
    /// A field that frames the message or is for one connection: `Transfer-Encoding`, `Upgrade`, `Keep-Alive`.
    ResponseConnectionField = App, 500, "RFC 9110 §7.6.1", "application sends transfer-encoding, upgrade, keep-alive, te or an option of connection, which are the server's";
    /// The body is longer or shorter than the `Content-Length` that the application announced.
    ResponseLength = App, 500, "RFC 9110 §8.6", "application's body does not have the announced length";
    /// A response begun twice, or continued before it was begun.
    ResponseOrder = App, 500, "RFC 9112 §6", "application's response is out of order";
    /// The handler raised, or returned what cannot be sent.
    HandlerFailed = App, 500, "RFC 9110 §15.6.1", "handler failed";
}
