//! W3C trace context: `traceparent` and `tracestate`, read strictly.
//!
//! What breaks a rule is treated as absent (Trace Context §3.2.2.3 and §3.3.1.1): a new trace begins, and a
//! state is only passed on with the parent it belongs to.

use crate::rng::Rng;

/// Where a request stands in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// 32 lower-case hexadecimal digits.
    pub trace_id: [u8; 32],
    /// The caller's span; `None` where the trace begins here.
    pub parent_id: Option<[u8; 16]>,
    /// The span of this request.
    pub span_id: [u8; 16],
    /// Trace flags; bit 0: sampled.
    pub flags: u8,
}

/// Bytes of a `traceparent` of version 00.
pub const TRACEPARENT_BYTES: usize = 55;
/// Members of a `tracestate` (§3.3.1.1); with more it is dropped.
const MEMBERS_MAX: usize = 32;
/// Bytes of a `tracestate` that is passed on; §3.3.1.5 asks for at least 512.
const TRACESTATE_BYTES_MAX: usize = 1024;

impl TraceContext {
    /// The context of a request that came with `traceparent`, or with none.
    pub fn of(traceparent: Option<&[u8]>, rng: &mut Rng) -> Self {
        let span_id = rng.hex16();
        if let Some((trace_id, parent_id, flags)) = traceparent.and_then(parse) {
            return Self {
                trace_id,
                parent_id: Some(parent_id),
                span_id,
                flags,
            };
        }
        let mut trace_id = [0; 32];
        let (high, low) = trace_id.split_at_mut(16);
        high.copy_from_slice(&rng.hex16());
        low.copy_from_slice(&rng.hex16());
        Self {
            trace_id,
            parent_id: None,
            span_id,
            flags: 1,
        }
    }

    /// A `traceparent` whose parent is this request's span.
    pub fn traceparent(&self) -> [u8; TRACEPARENT_BYTES] {
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        text[3..35].copy_from_slice(&self.trace_id);
        text[36..52].copy_from_slice(&self.span_id);
        text[54] = b'0' + (self.flags & 1);
        text
    }
}

/// Trace id, parent id and flags of a `traceparent` (§3.2.2).
fn parse(text: &[u8]) -> Option<([u8; 32], [u8; 16], u8)> {
    let (version, rest) = (text.get(..2)?, text.get(2..)?);
    let trace_id: [u8; 32] = rest.get(1..33)?.try_into().ok()?;
    let parent_id: [u8; 16] = rest.get(34..50)?.try_into().ok()?;
    let flags = rest.get(51..53)?;
    let dashes = [rest.first(), rest.get(33), rest.get(50)];
    let is_sound = dashes.iter().all(|dash| *dash == Some(&b'-'))
        && [version, &trace_id, &parent_id, flags].iter().all(|part| is_hex(part))
        && trace_id.iter().any(|&digit| digit != b'0')
        && parent_id.iter().any(|&digit| digit != b'0')
        && version != b"ff"
        // Later versions may say more behind another dash; this one may not.
        && match text.get(TRACEPARENT_BYTES) {
            None => true,
            Some(&next) => version != b"00" && next == b'-',
        };
    let flag = u8::from_str_radix(std::str::from_utf8(flags).ok()?, 16).ok()?;
    is_sound.then_some((trace_id, parent_id, flag & 1))
}

fn is_hex(text: &[u8]) -> bool {
    text.iter()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a `tracestate` may be passed on (§3.3.1): list members `key=value`, no key twice.
pub fn is_tracestate(text: &[u8]) -> bool {
    if text.len() > TRACESTATE_BYTES_MAX {
        return false;
    }
    let mut keys: Vec<&[u8]> = Vec::new();
    for member in text.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
        if member.is_empty() {
            continue;
        }
        let Some(equals) = member.iter().position(|&byte| byte == b'=') else {
            return false;
        };
        let (key, value) = (&member[..equals], &member[equals + 1..]);
        if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() == MEMBERS_MAX {
            return false;
        }
        keys.push(key);
    }
    !keys.is_empty()
}

fn is_key(key: &[u8]) -> bool {
    let is_inner =
        |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/');
    let (tenant, system) = match key.iter().position(|&byte| byte == b'@') {
        Some(at) => (&key[..at], Some(&key[at + 1..])),
        None => (key, None),
    };
    let begins_well = |part: &[u8], digits: bool| {
        part.first()
            .is_some_and(|byte| byte.is_ascii_lowercase() || digits && byte.is_ascii_digit())
    };
    match system {
        None => key.len() <= 256 && begins_well(tenant, false) && tenant.iter().all(is_inner),
        Some(system) => {
            tenant.len() <= 241
                && system.len() <= 14
                && begins_well(tenant, true)
                && begins_well(system, false)
                && tenant.iter().chain(system).all(is_inner)
        }
    }
}

fn is_value(value: &[u8]) -> bool {
    (1..=256).contains(&value.len())
        && value.last() != Some(&b' ')
        && value
            .iter()
            .all(|&byte| matches!(byte, 0x20..=0x7e) && byte != b',' && byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[u8] = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_sound_parent_is_continued() {
        let context = TraceContext::of(Some(GOOD), &mut Rng::new());
        assert_eq!(&context.trace_id, b"0af7651916cd43dd8448eb211c80319c");
        assert_eq!(context.parent_id.as_ref(), Some(b"b7ad6b7169203331"));
        assert_ne!(context.parent_id, Some(context.span_id));
        let text = context.traceparent();
        assert_eq!(&text[..36], &GOOD[..36]);
        assert_eq!(&text[52..], b"-01");
    }

    #[test]
    fn a_broken_parent_begins_a_new_trace() {
        let replaced = |at: usize, byte: u8| {
            let mut text = GOOD.to_vec();
            text[at] = byte;
            text
        };
        let broken = [
            replaced(2, b'_'),
            replaced(35, b'_'),
            replaced(52, b'_'),
            replaced(5, b'A'), // upper case
            replaced(40, b'g'),
            replaced(54, b'x'),
            [&b"ff"[..], &GOOD[2..]].concat(),
            [GOOD, b"-extra"].concat(), // version 00 has no more parts
            [&b"cc"[..], &GOOD[2..], b"x"].concat(),
            GOOD[..54].to_vec(),
            b"00-00000000000000000000000000000000-b7ad6b7169203331-01".to_vec(),
            b"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01".to_vec(),
            Vec::new(),
        ];
        for text in &broken {
            assert_eq!(parse(text), None, "{}", String::from_utf8_lossy(text));
        }
        let fresh = TraceContext::of(Some(&broken[0]), &mut Rng::new());
        assert_eq!((fresh.parent_id, fresh.flags), (None, 1));
        assert!(parse(&fresh.traceparent()).is_some());
    }

    #[test]
    fn later_versions_may_say_more() {
        assert!(parse(&[&b"cc"[..], &GOOD[2..], b"-what the future brings"].concat()).is_some());
        assert!(parse(&[&b"cc"[..], &GOOD[2..]].concat()).is_some());
    }

    #[test]
    fn states() {
        for text in [
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            "a=1, b=2",
            "1a-2@x=v",
            "a=1,,b=2",
            "a= 1",
        ] {
            assert!(is_tracestate(text.as_bytes()), "{text}");
        }
        let many: Vec<String> = (0..33).map(|n| format!("k{n}=v")).collect();
        let long = format!("a={}", "x".repeat(257));
        for text in [
            "",
            ",",
            "a",
            "a=",
            "=1",
            "A=1",
            "a=1,a=2",
            "a=1=2",
            "1a=v",
            "a@b@c=1",
            "a@=1",
            &many.join(","),
            &long,
        ] {
            assert!(!is_tracestate(text.as_bytes()), "{text}");
        }
    }
}
