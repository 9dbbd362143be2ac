//! Dialogues with a whole connection: bytes of streams in, events and bytes of streams out.

mod budgets;
mod client;
mod exchange;
mod priorities;
mod sessions;

#[test]
fn every_fault_of_http_3_is_shown() {
    let tests = [
        include_str!("exchange.rs"),
        include_str!("budgets.rs"),
        include_str!("sessions.rs"),
    ];
    let of_http_3 = |spec: &str| {
        ["RFC 9114", "RFC 9204", "RFC 9297"]
            .iter()
            .any(|rfc| spec.starts_with(rfc))
    };
    for fault in citius_http::Fault::ALL {
        let is_shown = tests.iter().any(|text| text.contains(fault.name()));
        assert!(
            is_shown || !of_http_3(fault.spec()),
            "no test shows {fault:?}"
        );
    }
}
