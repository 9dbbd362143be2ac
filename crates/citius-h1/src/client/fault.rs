//! Every rule that a server can break, as one flat list. After a fault the connection reads no further byte.

use citius_http::Fault as Shared;

macro_rules! faults {
    ($($(#[$doc:meta])* $name:ident = $spec:literal, $text:literal;)+) => {
        /// A rule that the server has broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $name,)+
            /// One of the rules that requests and responses have in common.
            Shared(Shared),
        }

        impl Fault {
            /// All that only responses can break.
            const OWN: &'static [Self] = &[$(Self::$name,)+];

            /// Where the rule stands.
            pub const fn spec(self) -> &'static str {
                match self {
                    $(Self::$name => $spec,)+
                    Self::Shared(fault) => fault.spec(),
                }
            }

            /// What was broken: lower case, no full stop.
            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                    Self::Shared(fault) => fault.text(),
                }
            }

            /// The name in transcripts and logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Shared(fault) => fault.name(),
                }
            }
        }
    };
}

faults! {
    /// Not `version SP status [ SP reason ] CRLF`.
    StatusLineSyntax = "RFC 9112 §4", "status line is not version, status and reason";
    /// Not `HTTP/1.0` or `HTTP/1.1`, but an HTTP version.
    VersionUnsupported = "RFC 9112 §2.3", "HTTP version is neither 1.0 nor 1.1";
    /// A status outside 100…599.
    StatusUnknown = "RFC 9110 §15", "status is not one of HTTP";
    /// Longer than `head_bytes_max`.
    HeadTooLong = "RFC 9112 §4", "head is too long";
    /// More field lines than `fields_max`.
    TooManyFields = "RFC 9112 §5", "head has too many fields";
    /// More than `interim_max` of them before the final response.
    TooManyInterim = "RFC 9110 §15.2", "too many interim responses";
    /// An interim response of a version that has none: what follows it would be its body there.
    InterimInHttp10 = "RFC 9110 §15.2", "interim response in HTTP/1.0";
    /// A 101 to a request that did not ask for another protocol.
    SwitchUnasked = "RFC 9110 §15.2.2", "connection changes to a protocol that was not asked for";
    /// A length other than 0, or a transfer coding, with a status that has no content.
    ContentForbidden = "RFC 9110 §6.4.1", "status has no content, and its head announces some";
    /// Announced or grown larger than `body_bytes_max`.
    BodyTooLong = "RFC 9110 §6.4", "body is too long";
    /// Bytes without a request.
    Unasked = "RFC 9112 §9.2", "bytes came that belong to no request";
    /// The server has closed before the first byte of its response.
    ClosedBeforeResponse = "RFC 9112 §9.3", "connection closed before the response";
    /// The server has closed within a head.
    HeadTruncated = "RFC 9112 §8", "connection closed in the head of the response";
    /// The server has closed within a body whose end is known otherwise.
    BodyTruncated = "RFC 9112 §8", "connection closed in the body of the response";
}

impl Fault {
    /// The rules that requests and responses have in common.
    const SHARED: [Shared; 13] = [
        Shared::LineEnding,
        Shared::FieldNameSyntax,
        Shared::FieldValueSyntax,
        Shared::LineFolding,
        Shared::ContentLengthSyntax,
        Shared::AmbiguousLength,
        Shared::TransferEncoding,
        Shared::TransferEncodingInHttp10,
        Shared::ChunkSize,
        Shared::ChunkExtension,
        Shared::ChunkEnd,
        Shared::TrailerForbidden,
        Shared::TrailersTooLong,
    ];

    /// All faults, so that a test can demand a vector for each.
    pub fn all() -> impl Iterator<Item = Self> {
        let shared = Self::SHARED.into_iter().map(Self::Shared);
        Self::OWN.iter().copied().chain(shared)
    }

    /// Whether the server was cut off, or has left, in place of breaking a rule.
    pub const fn is_end(self) -> bool {
        matches!(
            self,
            Self::ClosedBeforeResponse | Self::HeadTruncated | Self::BodyTruncated
        )
    }

    /// Whether a limit is exceeded.
    pub const fn is_size(self) -> bool {
        matches!(
            self,
            Self::HeadTooLong
                | Self::TooManyFields
                | Self::TooManyInterim
                | Self::BodyTooLong
                | Self::Shared(Shared::TrailersTooLong)
        )
    }
}

impl From<Shared> for Fault {
    fn from(fault: Shared) -> Self {
        match fault {
            Shared::BodyTooLong => Self::BodyTooLong,
            Shared::TooManyFields => Self::TooManyFields,
            other => Self::Shared(other),
        }
    }
}
