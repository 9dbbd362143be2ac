//! What the two ends tell each other at first (RFC 9114 §7.2.4, RFC 9204 §5, RFC 9220 §3, RFC 9297 §2.1.1).

use alloc::vec::Vec;

use citius_http::{Fault, Limits};

use crate::seam::Options;
use crate::varint;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;
const H3_DATAGRAM: u64 = 0x33;
/// Datagrams as draft 04 named them, which Chromium waits for.
const H3_DATAGRAM_DRAFT04: u64 = 0xff_d277;
/// WebTransport of draft 02: Chromium and Firefox.
const ENABLE_WEBTRANSPORT: u64 = 0x2b60_3742;
/// Of draft 07, the number of sessions: Chromium changes to that draft.
const WEBTRANSPORT_MAX_SESSIONS_DRAFT07: u64 = 0xc671_706a;
/// Of drafts 13 and 14, the number of sessions: Safari.
const WEBTRANSPORT_MAX_SESSIONS: u64 = 0x14e9_cd29;
/// Of drafts 15 and 16.
const WEBTRANSPORT_ENABLED: u64 = 0x2c7c_f000;

/// The client's settings, as far as they concern a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settings {
    /// It takes datagrams.
    pub(crate) datagrams: bool,
}

impl Settings {
    /// The settings of a frame; unknown ones are ignored.
    ///
    /// # Errors
    /// `SettingsValue` for one that is repeated, HTTP/2's, or has an impossible value; `FrameSize` if one is not whole.
    pub(crate) fn read(mut payload: &[u8]) -> Result<Self, Fault> {
        let mut settings = Self::default();
        let mut seen = Vec::new();
        while !payload.is_empty() {
            let name = varint::take(&mut payload).ok_or(Fault::FrameSize)?;
            let value = varint::take(&mut payload).ok_or(Fault::FrameSize)?;
            match name {
                0x2..=0x5 => return Err(Fault::SettingsValue),
                ENABLE_CONNECT_PROTOCOL | H3_DATAGRAM if value > 1 => {
                    return Err(Fault::SettingsValue);
                }
                H3_DATAGRAM | H3_DATAGRAM_DRAFT04 => settings.datagrams |= value == 1,
                _ => {}
            }
            seen.push(name);
        }
        seen.sort_unstable();
        let is_repeated = seen.windows(2).any(|pair| matches!(pair, [a, b] if a == b));
        if is_repeated {
            Err(Fault::SettingsValue)
        } else {
            Ok(settings)
        }
    }
}

/// The payload of our settings.
pub(crate) fn announced(limits: &Limits, options: Options) -> Vec<u8> {
    let mut payload = Vec::new();
    let mut say = |name: u64, value: u64| {
        varint::put(&mut payload, name);
        varint::put(&mut payload, value);
    };
    say(MAX_FIELD_SECTION_SIZE, u64::from(limits.head_bytes_max));
    if limits.h3_table_bytes > 0 {
        say(QPACK_MAX_TABLE_CAPACITY, u64::from(limits.h3_table_bytes));
        say(
            QPACK_BLOCKED_STREAMS,
            u64::from(limits.h3_blocked_streams_max),
        );
    }
    if options.extended_connect || options.webtransport {
        say(ENABLE_CONNECT_PROTOCOL, 1);
    }
    if options.webtransport {
        let n_sessions = u64::from(limits.webtransport_sessions_max.max(1));
        for (name, value) in [
            (H3_DATAGRAM, 1),
            (H3_DATAGRAM_DRAFT04, 1),
            (ENABLE_WEBTRANSPORT, 1),
            (WEBTRANSPORT_MAX_SESSIONS_DRAFT07, n_sessions),
            (WEBTRANSPORT_MAX_SESSIONS, n_sessions),
            (WEBTRANSPORT_ENABLED, 1),
        ] {
            say(name, value);
        }
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(settings: &[(u64, u64)]) -> Vec<u8> {
        let mut payload = Vec::new();
        for &(name, value) in settings {
            varint::put(&mut payload, name);
            varint::put(&mut payload, value);
        }
        payload
    }

    #[test]
    fn takes_what_clients_send_and_refuses_the_impossible() {
        // Chromium's: table, section size, blocked streams, datagrams, a reserved one.
        let read = Settings::read(&payload(&[
            (1, 65_536),
            (6, 262_144),
            (7, 100),
            (0x33, 1),
            (0x21, 5),
        ]));
        assert_eq!(read, Ok(Settings { datagrams: true }));
        for wrong in [
            &[(2, 0)][..],
            &[(3, 1)],
            &[(4, 1)],
            &[(5, 1)],
            &[(8, 2)],
            &[(0x33, 2)],
            &[(1, 0), (1, 0)],
            &[(0x4242, 0), (1, 0), (0x4242, 1)],
        ] {
            assert_eq!(
                Settings::read(&payload(wrong)),
                Err(Fault::SettingsValue),
                "{wrong:?}"
            );
        }
        assert_eq!(Settings::read(&[1]), Err(Fault::FrameSize));
        assert_eq!(Settings::read(&[0x40]), Err(Fault::FrameSize));
    }

    #[test]
    fn ours_can_be_read_and_name_every_dialect() {
        let options = Options {
            extended_connect: true,
            webtransport: true,
        };
        let ours = announced(&Limits::default(), options);
        assert_eq!(Settings::read(&ours), Ok(Settings { datagrams: true }));
        let plain = announced(&Limits::default(), Options::default());
        assert!(ours.len() > plain.len() && Settings::read(&plain).is_ok());
    }
}
