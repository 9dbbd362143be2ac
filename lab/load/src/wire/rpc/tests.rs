use super::{Rpc, length_of, of_stream, on_stream};
use crate::request::Request;
use crate::wire::{Answers, Failure, Fault, Setup, Ticket, Wire};

#[derive(Debug, Default, PartialEq)]
struct Heard(Vec<(Ticket, u16, Vec<u8>)>);

impl Answers for Heard {
    fn is_head(&self, _ticket: Ticket) -> bool {
        false
    }
    fn begin(&mut self, ticket: Ticket, status: u16, _closing: bool) {
        self.0.push((ticket, status, Vec::new()));
    }
    fn body(&mut self, ticket: Ticket, bytes: &[u8]) {
        let open = self.0.last_mut().expect("begun");
        assert_eq!(open.0, ticket);
        open.2.extend_from_slice(bytes);
    }
    fn unseen(&mut self, _ticket: Ticket, _n_bytes: u64) {
        unreachable!("nothing is skipped");
    }
    fn complete(&mut self, ticket: Ticket) {
        assert_eq!(self.0.last().map(|open| open.0), Some(ticket));
    }
    fn fail(&mut self, ticket: Ticket, failure: Failure) {
        unreachable!("call {ticket} cannot fail alone, {failure:?}");
    }
    fn deliver(&mut self, _due_ns: Option<u64>, _n_bytes: u64) {
        unreachable!("nothing is broadcast");
    }
    fn release(&mut self, _ticket: Ticket) {
        unreachable!("nothing is broadcast");
    }
}

const SETUP: Setup = Setup {
    keep_alive: true,
    is_secure: false,
    is_broadcast: false,
};

fn hello(body: &[u8]) -> Request {
    Request {
        method: "GET".into(),
        target: "/hello".into(),
        authority: "a".into(),
        headers: Vec::new(),
        body: body.into(),
        is_chunked: false,
    }
}

fn asked(tickets: &[Ticket], body: &[u8]) -> (Rpc, Vec<u8>) {
    let request = hello(body);
    let (mut wire, mut output) = (Rpc::new(SETUP), Vec::new());
    for ticket in tickets {
        wire.send(
            *ticket,
            0,
            &Rpc::prepare(&[&request], SETUP)[0],
            &mut output,
        );
    }
    (wire, output)
}

#[test]
fn a_call_names_its_procedure_and_has_parameters() {
    let (_, output) = asked(&[0x0102], b"");
    assert_eq!(output, b"\x94\x00\xcd\x01\x02\xd9\x05hello\x90");
    let (_, output) = asked(&[7], &[0x91, 0x05]);
    assert_eq!(output, b"\x94\x00\xcd\x00\x07\xd9\x05hello\x91\x05");
}

#[test]
fn answers_are_heard_in_any_order_and_any_cut() {
    let bytes = b"\x94\x01\x02\xc0\xa2ok\x94\x01\xcd\x01\x02\x81\xa1t\xa1x\xc0\
        \x93\x02\xa1n\x90\x94\x01\xcc\x80\xc0\xc4\x01z\x93\x02\xa9$/goodbye\x90";
    let expected = Heard(vec![
        (2, 200, b"\xa2ok".to_vec()),
        (0x0102, 500, b"\x81\xa1t\xa1x".to_vec()),
        (128, 200, b"\xc4\x01z".to_vec()),
    ]);
    for cut in 0..=bytes.len() {
        let ((mut wire, _), mut heard) = (asked(&[2, 0x0102, 128], b""), Heard::default());
        for part in [&bytes[..cut], &bytes[cut..]] {
            assert_eq!(wire.receive(&mut (), part, &mut heard), Ok(()));
        }
        assert_eq!(heard, expected, "cut at {cut}");
        assert!(wire.is_over());
    }
}

#[test]
fn what_answers_no_call_is_a_fault() {
    for (bytes, fault) in [
        (&b"HTTP/1.1"[..], Fault::Call),
        (b"\x94\x01\x09\xc0\xc0", Fault::Unasked),
        (b"\x94\x00\x02\xa1a\x90", Fault::Call),
        (b"\x94\xc1", Fault::Call),
    ] {
        let (mut wire, _) = asked(&[2], b"");
        assert_eq!(
            wire.receive(&mut (), bytes, &mut Heard::default()),
            Err(fault)
        );
    }
    let (mut wire, _) = asked(&[2], b"");
    let twice = b"\x94\x01\x02\xc0\xc0\x94\x01\x02\xc0\xc0";
    let heard = wire.receive(&mut (), twice, &mut Heard::default());
    assert_eq!(heard, Err(Fault::Unasked));
}

#[test]
fn every_kind_of_value_has_its_length() {
    for value in [
        &[0x05][..],
        &[0xff],
        &[0xc0],
        &[0xca, 1, 2, 3, 4],
        &[0xd3, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0xa1, 1],
        &[0xd9, 1, 1],
        &[0xda, 0, 1, 1],
        &[0xdb, 0, 0, 0, 1, 1],
        &[0xc4, 1, 1],
        &[0xd4, 1, 1],
        &[
            0xd8, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
        ],
        &[0xc7, 1, 1, 1],
        &[0x92, 1, 0x91, 1],
        &[0x81, 1, 2],
        &[0xdc, 0, 1, 1],
        &[0xdf, 0, 0, 0, 1, 1, 1],
    ] {
        assert_eq!(length_of(value), Ok(Some(value.len())), "{value:02x?}");
        for cut in 0..value.len() {
            assert_eq!(
                length_of(&value[..cut]),
                Ok(None),
                "{value:02x?} cut at {cut}"
            );
        }
    }
}

#[test]
fn a_stream_has_one_call_and_one_response() {
    let request = hello(b"\x91\x07");
    assert_eq!(on_stream(&request), b"\x94\x00\x01\xd9\x05hello\x91\x07");
    assert_eq!(
        of_stream(b"\x94\x01\x01\xc0\xa2ok"),
        Ok((200, &b"\xa2ok"[..]))
    );
    assert_eq!(
        of_stream(b"\x94\x01\x01\xa2no\xc0"),
        Ok((500, &b"\xa2no"[..]))
    );
    for wrong in [
        &b""[..],
        b"\x94\x01\x01\xc0",
        b"\x94\x01\x02\xc0\xc0",
        b"\x94\x01\x01\xc0\xc0\xc0",
        b"\x93\x02\xa1x\x90",
    ] {
        assert_eq!(of_stream(wrong), Err(Fault::Call), "{wrong:02x?}");
    }
}
