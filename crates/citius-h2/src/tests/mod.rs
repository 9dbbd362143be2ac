//! Dialogues with a whole connection: frames in, events and frames out.

mod budgets;
mod campaign;
mod client;
mod exchange;
mod fast_paths;
mod flow;
mod priorities;

#[test]
fn every_fault_of_http_2_is_shown() {
    let tests = [
        include_str!("exchange.rs"),
        include_str!("budgets.rs"),
        include_str!("flow.rs"),
        include_str!("../../../citius-http/src/multiplexed/head.rs"),
    ];
    let of_http_2 = |spec: &str| {
        ["RFC 9113", "RFC 754"]
            .iter()
            .any(|rfc| spec.starts_with(rfc))
    };
    for fault in citius_http::Fault::ALL {
        let is_shown = tests
            .iter()
            .filter_map(|text| text.split("#[cfg(test)]").last())
            .any(|text| text.contains(fault.name()));
        assert!(
            is_shown || !of_http_2(fault.spec()),
            "no test shows {fault:?}"
        );
    }
}
