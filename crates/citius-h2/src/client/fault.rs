//! Rules of HTTP/2 that a server has broken.

use crate::frame::Code;

/// A rule that a server has broken, or a limit that it exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What the server is told.
    pub(crate) code: Code,
    /// The rule's name.
    pub name: &'static str,
    /// What is wrong.
    pub text: &'static str,
    /// Where the rule is.
    pub spec: &'static str,
}

macro_rules! faults {
    ($($name:ident = $code:ident, $spec:literal, $text:literal;)+) => {
        #[expect(non_upper_case_globals, missing_docs, reason = "names of rules; their texts say what they are")]
        impl Fault {
            $(pub const $name: Self = Self {
                code: Code::$code,
                name: stringify!($name),
                text: $text,
                spec: $spec,
            };)+
        }
    };
}

faults! {
    SettingsMissing = Protocol, "RFC 9113 §3.4", "the first frame is not SETTINGS";
    FrameSize = FrameSize, "RFC 9113 §4.2", "a frame has a size that it cannot have";
    FrameOrder = Protocol, "RFC 9113 §6.10", "a frame comes within a field section";
    FrameStream = Protocol, "RFC 9113 §5.1", "a frame names a stream that it cannot be of";
    FramePadding = Protocol, "RFC 9113 §6.1", "padding is longer than its frame";
    Push = Protocol, "RFC 9113 §8.4", "a response is pushed, which was switched off";
    SettingsValue = Protocol, "RFC 9113 §6.5.2", "a setting has a value that it cannot have";
    WindowIncrement = Protocol, "RFC 9113 §6.9", "a window is opened by nothing";
    FlowControl = FlowControl, "RFC 9113 §6.9", "more is sent, or allowed, than a window has";
    Compression = Compression, "RFC 7541", "a field section cannot be read";
    ExcessiveLoad = EnhanceYourCalm, "RFC 9113 §10.5", "frames come that bring nothing on";
    SectionTooLong = EnhanceYourCalm, "RFC 9113 §10.5.1", "a field section is too long";
    HeadTooLong = Cancel, "RFC 9113 §10.5.1", "head is too long";
    TooManyFields = Cancel, "RFC 9113 §10.5.1", "head has too many fields";
    TooManyInterim = Cancel, "RFC 9110 §15.2", "too many interim responses";
    FieldSyntax = Protocol, "RFC 9113 §8.2.1", "a field has a name or value that it cannot have";
    FieldOfConnection = Protocol, "RFC 9113 §8.2.2", "a field speaks of a connection";
    PseudoField = Protocol, "RFC 9113 §8.3", "a pseudo-field is unknown, missing, twice there, or late";
    Status = Protocol, "RFC 9113 §8.3.2", "status is not one of HTTP/2";
    MessageOrder = Protocol, "RFC 9113 §8.1", "the parts of a response are not in their order";
    ContentLength = Protocol, "RFC 9113 §8.1.1", "content has another length than its head says";
    StreamClosed = StreamClosed, "RFC 9113 §5.1", "content comes behind its end";
}

impl Fault {
    /// Whether a limit is exceeded.
    pub fn is_size(self) -> bool {
        matches!(
            self,
            Self::HeadTooLong | Self::TooManyFields | Self::TooManyInterim | Self::SectionTooLong
        )
    }
}
