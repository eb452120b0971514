//! Requests that get no answer over HTTP/3, and servers that don't speak it.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{BODY, COUNT, order3, refused};
use crate::layers::certificates::Authority;
use crate::layers::quic::{Begins, Quic, data, framed, head};
use crate::support::{engine, expect, number, order, run, run_on};

/// Every request ends in the same failure, for that reason.
pub fn all_fail(server: &Quic, failure: &str, why: &str) -> Value {
    let result = run(&order3(server, COUNT));
    expect_failures(&result, failure, why);
    result
}

fn expect_failures(result: &Value, failure: &str, why: &str) {
    let path = format!("/failures/{failure}");
    expect(result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains(why), "{samples}");
}

#[test]
fn requests_the_server_had_not_seen_are_asked_again() {
    // Three answers for each connection, then the end, with requests still on their way.
    let server = Quic::start(|mut session| {
        for nth in 0..3 {
            let Some(id) = session.request() else { return };
            if nth == 2 {
                // A second control stream would be wrong: the first one goes on.
                session.act(move |quic, _| {
                    let control = quinn_proto::StreamId::new(
                        quinn_proto::Side::Server,
                        quinn_proto::Dir::Uni,
                        0,
                    );
                    let next = u64::from(id) + 4;
                    let mut payload = Vec::new();
                    loadgen::http3::frame::write_number(&mut payload, next);
                    let _ = quic.send_stream(control).write(&framed(7, &payload));
                });
            }
            session.answer(id, 200, BODY);
        }
        while session.request().is_some() {}
    });
    let load = server.load(json!({"streams": 1, "connections": 2}));
    let result = run(&order(&server.url(), 30, load));
    expect(&result, &[("/requests/sent", 30), ("/requests/completed", 30)]);
    assert!(number(&result, "/http3/go_aways") >= 8, "{result:#}");
}

#[test]
fn streams_that_are_reset_or_refused() {
    for (code, name, refused) in
        [(0x10c, "H3_REQUEST_CANCELLED", false), (0x10b, "H3_REQUEST_REJECTED", true)]
    {
        let server = Quic::start(move |mut session| {
            while let Some(id) = session.request() {
                session.reset(id, code);
            }
        });
        let result = all_fail(&server, "reset", name);
        let (refused, reset) = if refused { (COUNT, 0) } else { (0, COUNT) };
        expect(&result, &[("/http3/refused_streams", refused), ("/http3/reset_streams", reset)]);
        expect(&result, &[("/connections/opened", 2)]);
    }
    // One of three requests is reset in the middle of its body, and the others don't mind.
    let server = Quic::start(|mut session| {
        let mut nth = 0;
        while let Some(id) = session.request() {
            nth += 1;
            if nth % 3 == 0 {
                session.write(id, &[head(200, Some(100)), data(BODY)].concat(), false);
                session.reset(id, 0x102);
            } else {
                session.answer(id, 200, BODY);
            }
        }
    });
    let load = server.load(json!({"streams": 3}));
    let result = run(&order(&server.url(), 30, load));
    expect(&result, &[("/requests/completed", 20), ("/failures/reset", 10)]);
}

#[test]
fn bodies_that_are_not_as_long_as_they_say() {
    let answering = |bytes: Vec<u8>| {
        Quic::start(move |mut session| {
            while let Some(id) = session.request() {
                session.write(id, &bytes, true);
            }
        })
    };
    let short = answering([head(200, Some(100)), data(BODY)].concat());
    expect(&all_fail(&short, "truncated", "Content-Length"), &[("/connections/opened", 2)]);
    let long = answering([head(200, Some(10)), data(BODY)].concat());
    expect(&all_fail(&long, "malformed", "longer than"), &[("/connections/opened", 2)]);
    let bare = answering(data(BODY));
    all_fail(&bare, "malformed", "before its head");
    let nothing = answering(Vec::new());
    all_fail(&nothing, "malformed", "no head");
    let switching = answering(head(101, None));
    all_fail(&switching, "malformed", "101");
}

#[test]
fn servers_that_close_say_why() {
    let closing = Quic::start(|mut session| {
        if session.request().is_some() {
            session.close(0x102);
        }
    });
    let result = all_fail(&closing, "reset", "H3_INTERNAL_ERROR, \\\"as the test says\\\"");
    assert!(number(&result, "/keepalive/server_closed") > 0, "{result:#}");
    let forgetting = Quic::start(|mut session| {
        if session.request().is_some() {
            session.forget();
        }
    });
    // It is only heard of when something is sent once more.
    let mut order = order3(&forgetting, 4);
    order["load"]["timeout_s"] = json!(3.0);
    let result = run(&order);
    expect(&result, &[("/requests/completed", 0), ("/failures/reset", 4)]);
    assert!(result["failure_samples"].to_string().contains("stateless reset"), "{result:#}");
}

/// On connections that are open: a handshake may outlast a short timeout where much else runs.
#[test]
fn a_server_without_answers_runs_into_the_timeout() {
    let is_silent = Arc::new(AtomicBool::new(false));
    let silent = Arc::clone(&is_silent);
    let server = Quic::start(move |mut session| {
        while let Some(id) = session.request() {
            if !silent.load(Ordering::Relaxed) {
                session.answer(id, 200, BODY);
            }
        }
    });
    let load = server.load(json!({"connections": 2, "streams": 10}));
    let patient = order(&server.url(), COUNT, load);
    let mut engine = engine(1);
    let all_answered = [("/requests/completed", COUNT), ("/connections/opened", 2)];
    expect(&run_on(&mut engine, &patient), &all_answered);
    is_silent.store(true, Ordering::Relaxed);
    let mut impatient = patient.clone();
    impatient["load"]["timeout_s"] = json!(0.3);
    let result = run_on(&mut engine, &impatient);
    expect_failures(&result, "timeout", "no full answer within");
    expect(&result, &[("/latency_us/count", COUNT), ("/service_time_us/count", 0)]);
    expect(&result, &[("/connections/opened", 0)]);
    // They may be dead, and are not used again.
    is_silent.store(false, Ordering::Relaxed);
    expect(&run_on(&mut engine, &patient), &all_answered);
}

/// A request that gets no stream ends, too.
#[test]
fn waiting_for_a_stream_has_an_end() {
    let begins = Begins { streams: 1, ..Begins::default() };
    let server = Quic::beginning(begins, |mut session| {
        let Some(first) = session.request() else { return };
        // It goes on for ever.
        session.write(first, &head(200, None), false);
        while session.request().is_some() {}
    });
    let load = server.load(json!({"streams": 3, "timeout_s": 0.2}));
    let result = run(&order(&server.url(), 3, load));
    let of = |name: &str| number(&result, &format!("/failures/{name}"));
    assert_eq!(of("timeout") + of("connect"), 3, "{result:#}");
    assert_eq!(result["ended_by"], "count");
}

#[test]
fn servers_without_http3_are_refused() {
    let begins = Begins { alpn: "hq-interop", ..Begins::default() };
    let other = Quic::beginning(begins, |mut session| session.answer_all(BODY));
    refused(&order3(&other, COUNT), "no ALPN h3");
    let authority = Authority::new();
    let order_to = |address: std::net::SocketAddr| {
        let load = json!({"protocol": "http3", "timeout_s": 0.2,
                          "tls": {"ca_file": authority.file()}});
        order(&format!("https://{address}/"), COUNT, json!({"load": load}))
    };
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("an address");
    refused(&order_to(address), "not ready within");
    drop(silent);
    refused(&order_to(address), "nobody listens there on UDP");
    let plain = json!({"load": {"protocol": "http3"}});
    let plain = order("http://127.0.0.1:1/", COUNT, plain).to_string();
    let why = loadgen::order::parse::parse(&plain).expect_err("no TLS").message;
    assert!(why.contains("always encrypted"), "{why}");
    assert!(other.connections.load(Ordering::Relaxed) < 100);
}

/// Who offers versions that nobody speaks, again and again, is believed once.
#[test]
fn versions_are_not_negotiated_for_ever() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("an address");
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    std::thread::spawn(move || {
        let mut incoming = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut incoming) {
            if length < 50 {
                continue;
            }
            // RFC 9000 section 17.2.1: with the two ids the other way round.
            let theirs = 6 + usize::from(incoming[5]);
            let (target, rest) = (&incoming[6..theirs], &incoming[theirs..]);
            let source = &rest[1..1 + usize::from(rest[0])];
            let mut reply = vec![0x80, 0, 0, 0, 0, source.len() as u8];
            reply.extend_from_slice(source);
            reply.push(target.len() as u8);
            reply.extend_from_slice(target);
            reply.extend_from_slice(&[0x1a, 0x2a, 0x3a, 0x4a]);
            count.fetch_add(1, Ordering::Relaxed);
            let _ = socket.send_to(&reply, from);
        }
    });
    let load = json!({"protocol": "http3", "timeout_s": 0.5, "tls": {"verify": false}});
    let order = order(&format!("https://{address}/"), COUNT, json!({"load": load}));
    refused(&order, "speaks no version of QUIC");
    assert!(sent.load(Ordering::Relaxed) < 10);
}
