//! HTTP/1.1 over TLS against servers that do what a test says.

use std::io::Write;
use std::time::Duration;

use crate::layers::certificates::Authority;
use crate::layers::secure::{Secure, Session};
use crate::support::{HELLO, Server, engine, expect, number, order, run, run_on};
use serde_json::{Value, json};

const COUNT: u64 = 10;

fn answering(bytes: &'static [u8]) -> Secure {
    Secure::start(&[], move |mut session| session.answer_all(bytes))
}

/// The one sample of failures begins as it should, and nothing was sent.
fn assert_refused(result: &Value, wanted: &str) {
    expect(result, &[("/requests/sent", 0), ("/connections/opened", 0)]);
    assert!(number(result, "/failures/connect") > 0, "{result:#}");
    assert_eq!(result["ended_by"], "unreachable", "{result:#}");
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains(wanted), "{samples}");
}

#[test]
fn answers_are_checked_as_ever() {
    let secure = answering(HELLO);
    let sha256 = crate::layers::nginx::sha256(b"Hello, World!");
    let more = secure.trusting(json!({"connections": 3}));
    let mut order = order(&secure.url(), 50, more);
    order["requests"][0]["expect"] = json!({"body_bytes": 13, "body_sha256": sha256});
    let result = run(&order);
    expect(
        &result,
        &[
            ("/requests/completed", 50),
            ("/bytes/body", 50 * 13),
            ("/bytes/head", 50 * (HELLO.len() as u64 - 13)),
            ("/connections/opened", 3),
            ("/connections/reused_requests", 47),
            ("/connect_time_us/count", 3),
            ("/tls_handshake_us/count", 3),
        ],
    );
    order["requests"][0]["expect"] = json!({"body_sha256": "0".repeat(64)});
    expect(&run(&order), &[("/requests/completed", 49), ("/failures/body", 1)]);
    order["requests"][0]["expect"] = json!({"status": [404]});
    expect(&run(&order), &[("/requests/completed", 0), ("/failures/status", 50)]);
}

#[test]
fn sessions_are_resumed_or_not_as_asked() {
    let secure = answering(HELLO);
    for (resumption, full) in [(true, 1), (false, COUNT)] {
        let load = json!({"keepalive": "never", "tls": {"resumption": resumption}});
        let result = run(&order(&secure.url(), COUNT, secure.trusting(load)));
        expect(
            &result,
            &[
                ("/requests/completed", COUNT),
                ("/connections/opened", COUNT),
                ("/tls/full_handshakes", full),
                ("/tls/resumed_handshakes", COUNT - full),
            ],
        );
    }
}

#[test]
fn connections_carry_as_many_requests_as_asked_and_stay_between_slots() {
    let secure = answering(HELLO);
    let few = secure.trusting(json!({"keepalive": 4}));
    let result = run(&order(&secure.url(), COUNT, few));
    expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", 3)]);
    expect(&result, &[("/keepalive/server_closed", 0)]);

    let mut engine = engine(1);
    let always = order(&secure.url(), COUNT, secure.trusting(json!({"connections": 2})));
    for opened in [2, 0, 0] {
        let result = run_on(&mut engine, &always);
        expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", opened)]);
    }
    // Whoever takes any certificate gets connections of their own.
    let any_certificate = json!({"load": {"connections": 2, "tls": {"verify": false}}});
    let result = run_on(&mut engine, &order(&secure.url(), COUNT, any_certificate));
    expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", 2)]);
}

#[test]
fn a_server_that_closes_after_each_answer_is_reconnected_to() {
    let secure = Secure::start(&[], |mut session| {
        if session.request().is_some() {
            session.write(HELLO);
            session.close();
        }
    });
    let result = run(&order(&secure.url(), COUNT, secure.trusting(json!({}))));
    // Whether the end came before the next request or after it, which is then asked again.
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", COUNT)]);
}

/// RFC 8446 section 6.1: else a server takes it for an attack.
#[test]
fn the_end_of_a_connection_is_announced() {
    let (told, ends) = std::sync::mpsc::channel();
    let told = std::sync::Mutex::new(told);
    let secure = Secure::start(&[], move |mut session| {
        session.request();
        session.write(HELLO);
        let end = std::io::Read::read(&mut session.stream, &mut [0]).map_err(|e| e.kind());
        let _ = told.lock().expect("a channel").send(end);
    });
    let load = secure.trusting(json!({"keepalive": "never"}));
    expect(&run(&order(&secure.url(), 3, load)), &[("/requests/completed", 3)]);
    let ends: Vec<_> = ends.iter().take(3).collect();
    assert_eq!(ends, [Ok(0); 3]);
}

/// A file of certificates may be renewed between two orders.
#[test]
fn trusted_certificates_are_read_for_each_slot() {
    let secure = answering(HELLO);
    let right = std::fs::read(secure.authority.file()).expect("a file");
    let other = std::fs::read(Authority::new().file()).expect("a file");
    let order = order(&secure.url(), COUNT, secure.trusting(json!({"keepalive": "never"})));
    let mut engine = engine(1);
    for _ in 0..2 {
        std::fs::write(secure.authority.file(), &other).expect("a file");
        assert_refused(&run_on(&mut engine, &order), "nobody trusted");
        std::fs::write(secure.authority.file(), &right).expect("a file");
        expect(&run_on(&mut engine, &order), &[("/requests/completed", COUNT)]);
    }
}

#[test]
fn plain_and_secure_requests_go_together() {
    let (secure, plain) = (answering(HELLO), Server::answering(HELLO));
    let mut order = order(&secure.url(), 40, secure.trusting(json!({"connections": 2})));
    let other = json!({"url": plain.url(), "weight": 3.0});
    order["requests"].as_array_mut().expect("a list").push(other);
    let result = run(&order);
    expect(&result, &[("/requests/completed", 40), ("/connections/opened", 4)]);
    expect(&result, &[("/tls_handshake_us/count", 2)]);
}

#[test]
fn cookies_are_kept() {
    let secure = Secure::start(&[], |mut session| {
        let mut cookies = 0;
        while let Some(request) = session.request() {
            cookies += u32::from(request.contains("Cookie: a=1\r\n"));
            session.write(
                format!("HTTP/1.1 200 OK\r\nSet-Cookie: a=1; Path=/\r\nContent-Length: 1\r\n\r\n{cookies}")
                    .as_bytes(),
            );
        }
    });
    let sha256 = crate::layers::nginx::sha256(b"0");
    let mut order = order(&secure.url(), 1, secure.trusting(json!({"cookies": true})));
    let mut engine = engine(1);
    order["requests"][0]["expect"] = json!({"body_sha256": sha256});
    expect(&run_on(&mut engine, &order), &[("/requests/completed", 1)]);
    // The same connection, so its cookie comes back.
    expect(&run_on(&mut engine, &order), &[("/failures/body", 1)]);
}

#[test]
fn certificates_are_verified() {
    for (expired, wanted) in [(false, "another name"), (true, "expired")] {
        let authority = Authority::new();
        let issued = match expired {
            false => authority.issue("localhost"),
            true => authority.issue_expired("127.0.0.1"),
        };
        let secure = Secure::with(authority, issued, &[], |mut s| s.answer_all(HELLO));
        assert_refused(&run(&order(&secure.url(), COUNT, secure.trusting(json!({})))), wanted);
        let any_certificate = json!({"load": {"tls": {"verify": false}}});
        let result = run(&order(&secure.url(), COUNT, any_certificate));
        expect(&result, &[("/requests/completed", COUNT)]);
    }
    let (secure, stranger) = (answering(HELLO), Authority::new());
    let more = json!({"load": {"tls": {"ca_file": stranger.file()}}});
    // Also when a duration would let it go on for long.
    let order = order(&secure.url(), COUNT, more);
    assert_refused(&run(&order), "nobody trusted has issued it");
}

#[test]
fn handshakes_that_fail_are_failed_connects() {
    let patience = json!({"load": {"timeout_s": 0.2, "tls": {"verify": false}}});
    let https = |server: &Server| format!("https://{}/", server.address);
    let garbage = Server::start(|mut client| client.write(b"HTTP/1.1 400 No TLS\r\n\r\n"));
    assert_refused(&run(&order(&https(&garbage), COUNT, patience.clone())), "TLS handshake");
    let closing = Server::start(drop);
    assert_refused(&run(&order(&https(&closing), COUNT, patience.clone())), "TLS handshake");
    let silent = Server::start(|client| {
        std::thread::sleep(Duration::from_secs(1));
        drop(client);
    });
    assert_refused(&run(&order(&https(&silent), COUNT, patience.clone())), "not ready within");
    // With rests between tries, a server that closes at once isn't hammered.
    assert!(closing.connections.load(std::sync::atomic::Ordering::Relaxed) < 50);
    let other = Secure::start(&["http/0.9"], |mut session| session.answer_all(HELLO));
    assert_refused(&run(&order(&other.url(), COUNT, patience)), "no HTTP/1.1");
}

/// As OpenSSL and browsers do, though it could sign others.
#[test]
fn a_certificate_that_was_given_is_trusted_itself() {
    let serving = |name: &str, is_expired: bool| {
        let (authority, issued) = Authority::self_signed(name, is_expired);
        Secure::with(authority, issued, &[], |mut session| session.answer_all(HELLO))
    };
    let right = serving("127.0.0.1", false);
    for version in ["1.2", "1.3"] {
        let load = json!({"tls": {"version": version}});
        let result = run(&order(&right.url(), COUNT, right.trusting(load)));
        expect(&result, &[("/requests/completed", COUNT)]);
    }
    let other = serving("127.0.0.1", false);
    for (server, trusted, why) in [
        (&right, &other, "authority's (CA:TRUE)"),
        (&serving("127.0.0.2", false), &serving("127.0.0.2", false), "authority's (CA:TRUE)"),
    ] {
        let result = run(&order(&server.url(), COUNT, trusted.trusting(json!({}))));
        assert_refused(&result, why);
    }
    for (server, why) in
        [(serving("127.0.0.2", false), "another name"), (serving("127.0.0.1", true), "expired")]
    {
        assert_refused(&run(&order(&server.url(), COUNT, server.trusting(json!({})))), why);
    }
}

/// Messages are for people: what TLS's library calls its errors is no word of theirs.
#[test]
fn what_speaks_no_tls_or_another_one_is_told_in_words() {
    let patience = || json!({"timeout_s": 0.2, "tls": {"verify": false}});
    let alert = |code: u8| [21, 3, 3, 0, 2, 2, code];
    let plain = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    for (bytes, why) in [
        (&plain[..], "ask for http://"),
        (&alert(40), "handshake_failure"),
        (&alert(48), "the client's certificate"),
        (&alert(112), "no host of this name"),
        (&alert(99), "alert 99"),
    ] {
        let bytes = bytes.to_vec();
        let server = Server::start(move |mut client| {
            client.write(&bytes);
            client.request();
        });
        let url = format!("https://{}/", server.address);
        let result = run(&order(&url, 1, json!({"load": patience()})));
        assert_refused(&result, why);
        let samples = result["failure_samples"].to_string();
        for name in ["Handshake", "Invalid", "Unknown", "alert:"] {
            assert!(!samples.contains(name), "{samples}");
        }
    }
}

/// Every request ends in the same failure.
fn all_fail(failure: &str, script: impl Fn(Session) + Send + Sync + 'static) {
    let secure = Secure::start(&[], script);
    let load = json!({"connections": 2, "timeout_s": 0.2});
    let result = run(&order(&secure.url(), COUNT, secure.trusting(load)));
    let path = format!("/failures/{failure}");
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
}

#[test]
fn answers_cut_short() {
    const ENDLESS: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end";
    all_fail("truncated", |mut session| {
        session.request();
        session.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
        session.close();
    });
    // Without TLS saying so the end of the connection isn't the end of the answer.
    all_fail("truncated", |mut session| {
        session.request();
        session.write(ENDLESS);
    });
    all_fail("reset", |mut session| {
        session.request();
        session.close();
    });
    all_fail("malformed", |mut session| {
        session.request();
        session.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab");
        session.request();
    });
    all_fail("malformed", |mut session| {
        session.request();
        let _ = session.stream.sock.write_all(b"\x17\x03\x03\x00\x05wrong");
        session.request();
    });
    all_fail("timeout", |mut session| {
        session.request();
        session.request();
    });
    let secure = Secure::start(&[], |mut session| {
        session.request();
        session.write(ENDLESS);
        session.close();
    });
    let result = run(&order(&secure.url(), COUNT, secure.trusting(json!({}))));
    expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", COUNT)]);
}

#[test]
fn an_open_loop_sends_what_is_due_and_omits_nothing() {
    let secure = answering(HELLO);
    let load = |arrivals: Value| {
        let load = json!({"loop": "open", "connections": 4, "timeout_s": 0.3});
        let mut more = secure.trusting(load);
        more["load"]["arrivals"] = arrivals;
        more
    };
    let arrivals = json!({"process": "poisson", "stages": [{"rate_per_s": 1000.0}]});
    let result = run_on(&mut engine(2), &order(&secure.url(), 200, load(arrivals)));
    expect(&result, &[("/requests/completed", 200), ("/latency_us/count", 200)]);
    expect(&result, &[("/requests/dropped", 0), ("/client/threads", 2)]);

    let mut sessions = load(json!({"unit": "connection", "stages": [{"rate_per_s": 200.0}]}));
    sessions["load"]["keepalive"] = json!(3);
    let result = run(&order(&secure.url(), 10, sessions));
    expect(&result, &[("/requests/completed", 30), ("/connections/opened", 10)]);
}

#[test]
fn what_is_due_after_the_end_is_not_sent() {
    // Encrypting the first request keeps the thread busy until after the end, when the second
    // one is due as well.
    let secure = Secure::start(&[], |mut session| while session.request().is_some() {});
    let mut more = secure.trusting(json!({"loop": "open", "connections": 2, "timeout_s": 0.2}));
    more["load"]["arrivals"] = json!({"times_s": [0.0499, 0.050001]});
    more["count"] = Value::Null;
    more["duration_s"] = json!(0.05);
    let mut order = order(&secure.url(), 1, more);
    order["requests"][0]["method"] = json!("POST");
    order["requests"][0]["body"] = json!("x".repeat(16 << 20));
    let result = run(&order);
    // A thread that gets its CPU only after the end has sent nothing.
    assert_eq!(number(&result, "/requests/sent") + number(&result, "/requests/unsent"), 1);
}

#[test]
fn a_server_may_want_a_certificate_of_its_clients() {
    let secure = Secure::wanting_certificates(|mut session| session.answer_all(HELLO));
    let issued = secure.authority.issue("client");
    let folder = secure.authority.folder();
    let (certificate, key) = (folder.join("client.pem"), folder.join("client.key"));
    std::fs::write(&certificate, issued.certificate_pem).expect("a file");
    std::fs::write(&key, issued.key_pem).expect("a file");
    for version in ["1.2", "1.3"] {
        let tls = json!({"certificate_file": certificate, "key_file": key, "version": version});
        let known = secure.trusting(json!({"tls": tls}));
        let result = run(&order(&secure.url(), COUNT, known));
        expect(&result, &[("/requests/completed", COUNT)]);
    }
    let unknown = run(&order(&secure.url(), COUNT, secure.trusting(json!({}))));
    expect(&unknown, &[("/requests/completed", 0)]);
    let samples = unknown["failure_samples"].to_string();
    assert!(samples.contains("--cert"), "{samples}");
}

#[test]
fn a_chain_that_is_too_long_is_told_as_that() {
    let authority = Authority::new();
    let issued = authority.issue("127.0.0.1");
    let times = 1 + 65_536 / issued.certificate.len();
    let secure = Secure::with_chain(authority, issued, times, &[], |mut session| {
        session.answer_all(HELLO);
    });
    let result = run(&order(&secure.url(), 1, secure.trusting(json!({"timeout_s": 0.2}))));
    assert_refused(&result, "certificates are longer than 64 KB together");
}

/// Neither is late yet when the load is over, so that no failure says why nothing was sent.
#[test]
fn what_was_waited_for_at_the_end_is_told_where_nothing_was_sent() {
    let silent = Server::start(|mut client| while client.request().is_some() {});
    let more = json!({"duration_s": 0.2, "count": null, "load": {"tls": {"verify": false}}});
    let url = format!("https://{}/", silent.address);
    let result = run(&order(&url, 1, more));
    expect(&result, &[("/requests/sent", 0), ("/failures/connect", 0)]);
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains("the TLS handshake was under way when the load ended"), "{samples}");

    let more = json!({"duration_s": 0.2, "count": null, "load": {"protocol": "http2"}});
    let result = run(&order(&silent.url(), 1, more));
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains("the server had not begun HTTP/2"), "{samples}");
}
