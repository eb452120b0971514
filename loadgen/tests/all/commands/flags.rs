//! Flags of `loadgen run`.

use std::net::TcpListener;
use std::sync::atomic::Ordering;

use super::{output, stderr};
use crate::support::{HELLO, Server};

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    for (args, wanted) in [
        (&["-r", "5", "--think", "1s", "http://127.0.0.1/"][..], "doesn't wait for responses"),
        (&["-r", "5", "--stage", "1s:5", "http://127.0.0.1/"], "cannot be used with"),
        (&["--requests-per-conn", "5", "http://127.0.0.1/"], "--conn-rate"),
        (&["http://192.0.2.1/"], "--allow-remote"),
        (&[], "<URLS>"),
        (&["-c", "0", "http://127.0.0.1/"], "--connections"),
        (&["--rate", "-5", "http://127.0.0.1/"], "above 0"),
        (&["--source", "::1", "http://127.0.0.1/"], "same kind"),
        // Before anything is measured, which would be lost.
        (&["--csv", "/dev/null/x", "http://127.0.0.1/"], "--csv /dev/null/x: "),
        (&["-c", "100000000", "http://127.0.0.1/"], "open files"),
        (&["--fail-if", "p98>1s", "http://127.0.0.1/"], "p99.9"),
        (&["--poisson", "http://127.0.0.1/"], "--rate"),
        (&["--kernel-times", "http+unix://%2Ftmp%2Fx/"], "Unix sockets; leave it out"),
        (&["--conn-ramp", "9s", "-d", "5s", "http://127.0.0.1/"], "would never begin"),
        (&["--stop-if", "unanswered>5", "http://127.0.0.1/"], "known at the end"),
    ] {
        let output = output(&[&["run"][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(wanted), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn the_help_names_unit_and_default_of_every_flag() {
    let text = String::from_utf8(output(&["run", "--help"]).stdout).expect("text");
    let flags = text.split("\n  -").skip(1).chain(text.split("\n      --").skip(1));
    let mut seen = 0;
    for flag in flags.filter(|flag| !flag.contains("Print help")) {
        let flag = flag.split("\n\n").next().unwrap_or_default();
        let words = flag.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = flag.lines().next().unwrap_or_default();
        assert!(words.contains("[default: "), "{first} has no default");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
    assert!(text.contains("Examples:") && text.contains("Exit codes:"));
}

#[test]
fn values_without_sense_are_refused_by_the_name_of_their_flag() {
    for (flag, value) in [
        ("--timeout", "1e18"),
        // Histograms end at an hour.
        ("--timeout", "2h"),
        ("--cpus", "0,0"),
        ("--time", "1e9"),
        ("--window", "1ms"),
        ("--think", "1e9"),
        ("--rate", "1e12"),
        ("--stage", "10s:1e12"),
        ("--zipf", "11"),
        ("--ramp-up", "inf"),
        ("--expect-status", "9999"),
        ("--expect-sha256", "00"),
        ("--connections", "5000000000"),
    ] {
        let output = output(&["run", flag, value, "http://127.0.0.1/"]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(stderr(&output).contains(flag), "{flag}: {}", stderr(&output));
    }
}

#[test]
fn redirects_are_named_with_their_target() {
    let server = Server::answering(
        "HTTP/1.1 302 Found\r\nLOCATION: /sign-in?next=%2F\r\nContent-Length: 0\r\n\r\n",
    );
    let shown = output(&["run", "-n", "3", "-c", "1", &server.url()]);
    let table = String::from_utf8_lossy(&shown.stdout);
    assert!(table.contains("it redirects to /sign-in?next=%2F"), "{table}");
}

#[test]
fn connections_go_where_they_are_told_to() {
    let server = Server::start(|mut client| {
        let asked = client.request().unwrap_or_default();
        let status = if asked.contains("\r\nHost: shop.example\r\n") { "200 OK" } else { "404 No" };
        client.write(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    });
    let rule = format!("shop.example:80:{}", server.address);
    let shown = output(&["run", "--once", "--connect-to", &rule, "http://shop.example/"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let port = server.address.port();
    let (rule, url) =
        (format!("shop.example:{port}:127.0.0.1"), format!("http://shop.example:{port}/"));
    let host = "Host: shop.example";
    let shown = output(&["run", "--once", "--resolve", &rule, "-4", "-H", host, &url]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let refused =
        output(&["run", "--once", "--resolve", "a.example:80:192.0.2.1", "http://a.example/"]);
    assert!(stderr(&refused).contains("not on this machine"), "{}", stderr(&refused));
    let refused = output(&["run", "--once", "-6", &server.url()]);
    assert!(stderr(&refused).contains("no IPv6 address"), "{}", stderr(&refused));
}

#[test]
fn connections_take_the_addresses_of_a_name_in_turn() {
    let first = Server::answering(HELLO);
    let port = first.address.port();
    let listener = TcpListener::bind(("127.0.0.2", port)).expect("the same port elsewhere");
    let second = Server::listen(listener, |mut client| client.answer_all(HELLO));
    let url = format!("http://shop.example:{port}/");
    let connections =
        || [&first, &second].map(|server| server.connections.swap(0, Ordering::Relaxed));
    for flags in [&["-t", "2", "--think", "5ms"][..], &["-r", "200"]] {
        let run = [&["run", "-c", "4", "-d", "400ms"], flags].concat();
        let rule = format!("shop.example:{port}:127.0.0.1,127.0.0.2");
        let told = output(&[&run[..], &["--resolve", &rule, &url]].concat());
        assert_eq!(connections(), [2, 2], "{told:?}");
        // Nobody listens at the third.
        let rule = format!("shop.example:{port}:127.0.0.3,127.0.0.2,127.0.0.1");
        let told = output(&[&run[..], &["--resolve", &rule, &url]].concat());
        assert!(!String::from_utf8_lossy(&told.stdout).contains("Failed"), "{told:?}");
        assert_eq!(connections(), [1, 3]);
    }
}
