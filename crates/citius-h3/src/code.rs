//! Error codes (RFC 9114 §8.1, RFC 9204 §6, RFC 9297 §5.2, and WebTransport's).

use citius_http::{Blame, Fault};

/// Why a stream or a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Code {
    Datagram = 0x33,
    NoError = 0x100,
    GeneralProtocol = 0x101,
    Internal = 0x102,
    StreamCreation = 0x103,
    ClosedCriticalStream = 0x104,
    FrameUnexpected = 0x105,
    Frame = 0x106,
    ExcessiveLoad = 0x107,
    Id = 0x108,
    Settings = 0x109,
    MissingSettings = 0x10a,
    RequestRejected = 0x10b,
    RequestCancelled = 0x10c,
    RequestIncomplete = 0x10d,
    Message = 0x10e,
    Connect = 0x10f,
    QpackDecompressionFailed = 0x200,
    QpackEncoderStream = 0x201,
    QpackDecoderStream = 0x202,
    /// `WEBTRANSPORT_SESSION_GONE`.
    SessionGone = 0x170d_7b68,
    /// `WEBTRANSPORT_BUFFERED_STREAM_REJECTED`.
    SessionStreamRejected = 0x3994_bd84,
}

impl Code {
    /// The number.
    pub(crate) const fn number(self) -> u64 {
        self as u64
    }

    /// What tells the client of `fault`.
    pub(crate) fn of(fault: Fault) -> Self {
        match fault {
            Fault::Overloaded | Fault::HeadTooSlow => Self::NoError,
            Fault::StreamCreation => Self::StreamCreation,
            Fault::CriticalStreamClosed => Self::ClosedCriticalStream,
            Fault::FrameSequence => Self::FrameUnexpected,
            Fault::FrameSize => Self::Frame,
            Fault::ExcessiveLoad | Fault::ExcessiveResets | Fault::StreamStalled => {
                Self::ExcessiveLoad
            }
            Fault::IdentifierOrder => Self::Id,
            Fault::SettingsValue => Self::Settings,
            Fault::SettingsMissing => Self::MissingSettings,
            Fault::BodyTooSlow | Fault::BodyTooLong | Fault::StreamReset => Self::RequestCancelled,
            Fault::RequestIncomplete | Fault::Truncated => Self::RequestIncomplete,
            Fault::FieldCompression => Self::QpackDecompressionFailed,
            Fault::EncoderStream => Self::QpackEncoderStream,
            Fault::DecoderStream => Self::QpackDecoderStream,
            Fault::DatagramSyntax => Self::Datagram,
            _ if fault.blame() == Blame::App => Self::Internal,
            Fault::CapsuleSyntax => Self::GeneralProtocol,
            _ => Self::Message,
        }
    }
}

/// WebTransport's codes lie within HTTP/3's: this is the first of them.
const FIRST_OF_SESSIONS: u64 = 0x52e4_a40f_a8db;

/// An application's code as HTTP/3 sends it; every thirtieth number is reserved.
pub(crate) const fn from_session(code: u32) -> u64 {
    let code = code as u64;
    FIRST_OF_SESSIONS
        .saturating_add(code)
        .saturating_add(code / 0x1e)
}

/// The application's code that HTTP/3's `code` means; `None`: it is none.
pub(crate) fn to_session(code: u64) -> Option<u32> {
    let shifted = code.checked_sub(FIRST_OF_SESSIONS)?;
    if code.wrapping_sub(0x21).is_multiple_of(0x1f) {
        return None;
    }
    u32::try_from(shifted.saturating_sub(shifted / 0x1f)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_applications_go_there_and_back() {
        for code in [0, 1, 29, 30, 31, 59, 60, 1000, u32::MAX] {
            assert_eq!(to_session(from_session(code)), Some(code));
        }
        assert_eq!(
            (from_session(0), from_session(u32::MAX)),
            (0x52e4_a40f_a8db, 0x52e5_ac98_3162)
        );
        assert_eq!(to_session(0x10c), None);
        assert_eq!(to_session(0x52e4_a40f_a8f9), None, "a reserved one");
    }
}
