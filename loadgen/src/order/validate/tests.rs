//! What is refused, and how.

use crate::order::parse::parse;

fn message(url: &str, load: &str) -> String {
    let order = format!(
        r#"{{"requests": [{{"url": "{url}"}}], "count": 1,
            "load": {{"connections": 1, {load}}}}}"#
    );
    parse(&order).map_or_else(|error| error.message, |_| String::new())
}

#[test]
fn a_share_is_one_client_of_those_there_are() {
    let load = |kind: &str, share: &str| {
        let load = format!(
            r#""loop": "{kind}", "arrivals": {{"stages": [{{"rate_per_s": 1}}], "share": {share}}}"#
        );
        message("http://127.0.0.1:1/", &load)
    };
    for (share, wanted) in [
        (r#"{"of": 0, "index": 0, "seed": 1}"#, "load.arrivals.share.of: 0 is not a number"),
        (r#"{"of": 2, "index": 2, "seed": 1}"#, "share.index: there is no client 2 among 2"),
        (r#"{"of": 2, "index": 0}"#, "missing field `seed`"),
        (r#"{"of": 2, "index": 0, "seed": -1}"#, "load.arrivals.share.seed"),
    ] {
        let message = load("open", share);
        assert!(message.contains(wanted), "{share}: {message}");
    }
    let whole = r#"{"of": 1, "index": 0, "seed": 1}"#;
    assert_eq!(load("open", whole), "");
    assert!(load("closed", whole).contains("only an open loop has a timetable"));
}

#[test]
fn methods_are_tokens_and_statuses_end_an_exchange() {
    let message = |method: &str, status: u16| {
        let order = format!(
            r#"{{"requests": [{{"url": "http://127.0.0.1:1/", "method": "{method}",
                 "expect": {{"status": [{status}]}}}}], "count": 1,
                "load": {{"connections": 1, "loop": "closed"}}}}"#
        );
        parse(&order).map_or_else(|error| error.message, |_| String::new())
    };
    for (method, status) in [("M-SEARCH", 200), ("VERSION-CONTROL", 101), ("GET", 999)] {
        assert_eq!(message(method, status), "");
    }
    for (method, status) in [("GE T", 200), ("", 200), ("GET", 100), ("GET", 102)] {
        assert_ne!(message(method, status), "", "{method:?} {status}");
    }
}

#[test]
fn refuses_what_cannot_go_together() {
    let (plain, secure) = ("http://127.0.0.1:1/", "https://127.0.0.1:1/");
    let connections = r#""loop": "open", "arrivals": {"unit": "connection", "stages":
        [{"rate_per_s": 1}]}, "keepalive": 2, "protocol": "http2", "streams": 2"#;
    for (url, load, wanted) in [
        (plain, r#""loop": "closed", "streams": 2"#, "load.streams: only HTTP/2"),
        (plain, r#""loop": "closed", "protocol": "http2", "streams": 0"#, "load.streams: 0"),
        (plain, connections, "load.streams: where whole connections"),
        (plain, r#""loop": "closed", "tls": {}"#, "load.tls: no URL"),
        (
            plain,
            r#""loop": "closed", "connection_ramp_s": 1.0"#,
            "load.connection_ramp_s: a count may be",
        ),
        (
            plain,
            r#""loop": "open", "arrivals": {"stages": [{"rate_per_s": 1}]}, "connection_ramp_s": 1.0"#,
            "load.connection_ramp_s: connections of an open loop",
        ),
        (secure, r#""loop": "closed", "tls": {"verify": false, "ca_file": "x"}"#, "load.tls"),
        (secure, r#""loop": "closed", "idle_connections": 1"#, "load.slow_readers"),
        (plain, r#""loop": "closed", "protocol": "http2", "cookies": true"#, "load.cookies"),
        (plain, r#""loop": "closed", "protocol": "http3""#, "load.protocol"),
    ] {
        let message = message(url, load);
        assert!(message.contains(wanted), "{load}: {message}");
    }
    assert_eq!(message(plain, r#""loop": "closed", "protocol": "http2", "streams": 9"#), "");
    assert_eq!(message(secure, r#""loop": "closed", "tls": {"resumption": false}"#), "");
}
