//! Fields as they come, and what is made of them.

use alloc::string::String;

use citius_http::head::{FieldSpan, Span};

use super::*;

/// A head with these lines.
fn head(lines: &[&str]) -> Head {
    let mut head = Head::default();
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a field line");
        let mut append = |text: &str| {
            let start = u32::try_from(head.bytes.len()).expect("a short head");
            head.bytes.extend_from_slice(text.as_bytes());
            let end = u32::try_from(head.bytes.len()).expect("a short head");
            Span { start, end }
        };
        let field = FieldSpan {
            name: append(name),
            value: append(value),
        };
        head.fields.push(field);
    }
    head
}

fn proxies(networks: &str, names: &[&str]) -> Proxies {
    let mut proxies = Proxies::default();
    let networks = networks.split(',').filter(|text| !text.is_empty());
    proxies.networks = networks
        .map(|text| Network::parse(text).expect("a network"))
        .collect();
    for name in names {
        assert!(proxies.names.add(name), "{name}");
    }
    proxies
}

/// `client scheme host port prefix`, a dash for what is not known.
fn show(origin: Option<&Origin>) -> String {
    let Some(origin) = origin else {
        return "nothing".into();
    };
    let client = match origin.client {
        None => "-".into(),
        Some(Client::Hidden) => "hidden".into(),
        Some(Client::Address(address)) => address.to_string(),
    };
    let scheme = origin.scheme.map_or("-", Scheme::name);
    let host = origin.host.as_deref().unwrap_or("-");
    let port = origin.port.map_or("-".into(), |port| port.to_string());
    let prefix = origin.prefix.as_deref().unwrap_or("-");
    format!("{client} {scheme} {host} {port} {prefix}")
}

#[track_caller]
fn check(lines: &[&str], expected: &str) {
    let mut head = head(lines);
    proxies("127.0.0.1,10.0.0.0/8,::1", &Names::ALL).apply(&mut head);
    assert_eq!(show(head.origin.as_deref()), expected, "{lines:?}");
}

#[test]
fn the_rightmost_untrusted_address_is_the_client() {
    check(&["X-Forwarded-For: 192.0.2.1"], "192.0.2.1:0 - - - -");
    check(
        &["x-forwarded-for: 6.6.6.6, 192.0.2.1"],
        "192.0.2.1:0 - - - -",
    );
    check(
        &["X-Forwarded-For: 6.6.6.6, 192.0.2.1:7, 10.1.1.1"],
        "192.0.2.1:7 - - - -",
    );
    check(
        &["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 192.0.2.1"],
        "192.0.2.1:0 - - - -",
    );
    check(
        &["X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 10.1.1.1"],
        "192.0.2.1:0 - - - -",
    );
    check(
        &["X-Forwarded-For: 192.0.2.1, , ::1 ,"],
        "192.0.2.1:0 - - - -",
    );
    check(
        &["X-Forwarded-For: 10.0.0.2, 10.0.0.1"],
        "10.0.0.2:0 - - - -",
    );
    check(
        &["Forwarded: for=6.6.6.6, for=192.0.2.1;proto=https, for=10.1.1.1;proto=http"],
        "192.0.2.1:0 https - - -",
    );
    check(
        &[
            "Forwarded: for=192.0.2.1;proto=https",
            "Forwarded: for=10.1.1.1",
        ],
        "192.0.2.1:0 https - - -",
    );
}

#[test]
fn what_an_untrusted_hop_said_is_never_read() {
    check(
        &["X-Forwarded-For: \x01garbage\", 192.0.2.1"],
        "192.0.2.1:0 - - - -",
    );
    check(
        &["Forwarded: for=\"x, for=192.0.2.1"],
        "192.0.2.1:0 - - - -",
    );
    check(
        &["Forwarded: for=\"6.6.6.6;\\\",\", for=\"[2001:db8::1]:9\""],
        "[2001:db8::1]:9 - - - -",
    );
    check(
        &[
            "X-Forwarded-For: 6.6.6.6, 192.0.2.1",
            "X-Forwarded-Proto: https, http",
        ],
        "192.0.2.1:0 http - - -",
    );
}

#[test]
fn garbage_where_it_counts_is_ignored_as_a_whole() {
    check(&["X-Forwarded-For: 192.0.2.1, garbage"], "nothing");
    check(&["X-Forwarded-For: "], "nothing");
    check(&["X-Forwarded-For: client.example"], "nothing");
    check(&["X-Forwarded-For: 192.0.2.1, 10.1.1.1x"], "nothing");
    check(&["X-Forwarded-Proto: gopher"], "nothing");
    check(&["Forwarded: for=192.0.2.1;proto=gopher"], "nothing");
    check(
        &["Forwarded: for=192.0.2.1;host=\"a/b\";proto=https"],
        "nothing",
    );
    check(&["Forwarded: 192.0.2.1"], "nothing");
    check(&["Forwarded: for=2001:db8::1"], "nothing");
    check(&["X-Forwarded-Prefix: /a, /b"], "nothing");
    check(&["X-Forwarded-Host: evil.example/path"], "nothing");
    check(&["X-Forwarded-Port: 99999"], "nothing");
    // Fields that other parties may have written do not take a good one down.
    check(
        &["X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: gopher"],
        "192.0.2.1:0 - - - -",
    );
}

#[test]
fn hidden_clients_are_nobody_and_not_the_proxy() {
    check(&["Forwarded: for=unknown"], "hidden - - - -");
    check(
        &["Forwarded: for=\"_gazonk\";proto=https"],
        "hidden https - - -",
    );
    check(&["X-Forwarded-For: 192.0.2.1, unknown"], "hidden - - - -");
    check(&["Forwarded: proto=https;by=_x"], "- https - - -");
}

#[test]
fn hosts_ports_and_prefixes() {
    check(
        &["X-Forwarded-Host: shop.example", "X-Forwarded-Proto: https"],
        "- https shop.example - -",
    );
    check(
        &[
            "X-Forwarded-Host: shop.example:81",
            "X-Forwarded-Port: 8443",
        ],
        "- - shop.example 8443 -",
    );
    check(
        &["X-Forwarded-Port: 443", "X-Forwarded-Prefix: /api/"],
        "- - - 443 /api",
    );
    check(&["Forwarded: host=\"[::1]:81\""], "- - [::1] 81 -");
    // One value, or one for each hop.
    let hops = "X-Forwarded-For: 192.0.2.1, 10.0.0.1";
    check(
        &[hops, "X-Forwarded-Proto: https"],
        "192.0.2.1:0 https - - -",
    );
    check(
        &[hops, "X-Forwarded-Proto: https, http"],
        "192.0.2.1:0 https - - -",
    );
    check(
        &[hops, "X-Forwarded-Proto: gopher, https, http"],
        "192.0.2.1:0 https - - -",
    );
}

#[test]
fn x_forwarded_comes_before_a_forwarded_that_was_passed_on() {
    check(
        &[
            "Forwarded: for=6.6.6.6;host=evil.example",
            "X-Forwarded-For: 192.0.2.1",
        ],
        "192.0.2.1:0 - - - -",
    );
}

/// Hostile 15: without a name of its own, `host=` of a client's `Forwarded` would set the host.
#[test]
fn the_host_of_forwarded_has_a_name_of_its_own() {
    let line = ["Forwarded: for=192.0.2.1;proto=https;host=evil.example"];
    for (names, expected) in [
        (&["forwarded"][..], "192.0.2.1:0 https - - -"),
        (
            &["forwarded", "x-forwarded-host"],
            "192.0.2.1:0 https - - -",
        ),
        (
            &["forwarded", "forwarded-host"],
            "192.0.2.1:0 https evil.example - -",
        ),
        (&["forwarded-host"], "- - evil.example - -"),
    ] {
        let mut head = head(&line);
        proxies("*", names).apply(&mut head);
        assert_eq!(show(head.origin.as_deref()), expected, "{names:?}");
    }
}

#[test]
fn only_names_that_are_believed_are_read() {
    let lines = [
        "X-Forwarded-For: 192.0.2.1",
        "X-Forwarded-Host: evil.example",
        "X-Forwarded-Prefix: /evil",
        "X-Forwarded-Port: 1",
        "X-Forwarded-Proto: https",
    ];
    let mut all = head(&lines);
    proxies("*", &["x-forwarded-for"]).apply(&mut all);
    assert_eq!(show(all.origin.as_deref()), "192.0.2.1:0 - - - -");
    let mut none = head(&lines);
    proxies("*", &[]).apply(&mut none);
    assert_eq!(show(none.origin.as_deref()), "nothing");
    assert!(!Names::default().add("x-real-ip"));
}

#[test]
fn everybody_trusted_means_that_the_first_hop_is_believed() {
    let mut head = head(&["X-Forwarded-For: 192.0.2.1, 198.51.100.1"]);
    proxies("*", &Names::ALL).apply(&mut head);
    assert_eq!(show(head.origin.as_deref()), "192.0.2.1:0 - - - -");
}

#[test]
fn a_host_replaces_the_field() {
    for (lines, host) in [
        (&["Host: a", "X-Forwarded-Host: b"][..], "b"),
        (&["Host: a", "X-Forwarded-Host: b:81"], "b:81"),
        (
            &[
                "Host: a",
                "X-Forwarded-Host: b",
                "X-Forwarded-Port: 443",
                "X-Forwarded-Proto: https",
            ],
            "b",
        ),
        (
            &["Host: a", "X-Forwarded-Host: b", "X-Forwarded-Port: 8443"],
            "b:8443",
        ),
        (&["Host: a", "X-Forwarded-Port: 8443"], "a"),
        (&["Host: a", "Forwarded: host=b;proto=https"], "b"),
    ] {
        let mut head = head(lines);
        proxies("*", &Names::ALL).apply(&mut head);
        assert_eq!(head.field(b"host"), Some(host.as_bytes()), "{lines:?}");
        let hosts = head
            .fields()
            .filter(|(name, _)| name.eq_ignore_ascii_case(b"host"));
        assert_eq!(hosts.count(), 1);
    }
}
