//! HTTP/3 against servers that do what a test says, stream by stream.

mod failures;
mod hostile;

use std::time::Duration;

use loadgen::http3::qpack;
use serde_json::{Value, json};

use crate::layers::certificates::Authority;
use crate::layers::quic::{Begins, Quic, Session, data, framed, head};
use crate::support::{engine, expect, number, order, run, run_on};

const COUNT: u64 = 20;
const BODY: &[u8] = b"Hello, World!";

fn answering() -> Quic {
    Quic::start(|mut session| session.answer_all(BODY))
}

/// An order over two connections with three streams each.
fn order3(server: &Quic, count: u64) -> Value {
    order(&server.url(), count, server.load(json!({"connections": 2, "streams": 3})))
}

#[test]
fn streams_share_connections() {
    let server = answering();
    let mut order = order3(&server, 100);
    let sha256 = crate::layers::nginx::sha256(BODY);
    order["requests"][0]["expect"] = json!({"body_bytes": 13, "body_sha256": sha256});
    let result = run(&order);
    expect(
        &result,
        &[
            ("/requests/completed", 100),
            ("/bytes/body", 1300),
            ("/connections/opened", 2),
            ("/connections/reused_requests", 98),
            ("/http3/streams", 3),
            ("/by_status/200", 100),
            ("/tls_handshake_us/count", 2),
            ("/connect_time_us/count", 2),
        ],
    );
    assert_eq!(result["protocol"], "http3");
    assert!(result.get("http2").is_none());
    order["requests"][0]["expect"] = json!({"status": [404]});
    expect(&run(&order), &[("/failures/status", 100), ("/connections/opened", 2)]);
    order["requests"][0]["expect"] = json!({"body_bytes": 12});
    expect(&run(&order), &[("/failures/body", 100)]);
}

#[test]
fn a_count_is_exact_with_more_streams_than_requests() {
    let server = answering();
    let load = server.load(json!({"connections": 3, "streams": 50}));
    let result = run_on(&mut engine(2), &order(&server.url(), 5, load));
    expect(&result, &[("/requests/sent", 5), ("/requests/completed", 5)]);
}

#[test]
fn bodies_go_both_ways_whole() {
    let server = Quic::start(|mut session| {
        while let Some(id) = session.request() {
            let body = vec![b'x'; 200_000];
            session.write(id, &head(200, None), false);
            session.write(id, &data(&body), true);
        }
    });
    let mut order = order3(&server, 12);
    order["requests"][0]["method"] = json!("POST");
    order["requests"][0]["body"] = json!("y".repeat(200_000));
    order["load"]["timeout_s"] = json!(20.0);
    let result = run(&order);
    expect(&result, &[("/requests/completed", 12), ("/bytes/body", 2_400_000)]);
}

#[test]
fn the_server_says_how_many_streams_there_may_be() {
    let begins = Begins { streams: 2, ..Begins::default() };
    let server = Quic::beginning(begins, |mut session| session.answer_all(BODY));
    let load = server.load(json!({"streams": 5}));
    let result = run(&order(&server.url(), COUNT, load));
    expect(&result, &[("/requests/completed", COUNT), ("/http3/streams_allowed", 2)]);
    expect(&result, &[("/connections/opened", 1)]);
}

#[test]
fn connections_carry_as_many_requests_as_asked_and_stay_between_slots() {
    let server = answering();
    let mut few = order(&server.url(), COUNT, server.load(json!({"streams": 2})));
    few["load"]["keepalive"] = json!(4);
    let result = run(&few);
    expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", COUNT / 4)]);
    expect(&result, &[("/keepalive/server_closed", 0)]);
    few["load"]["keepalive"] = json!("never");
    let result = run(&few);
    expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", COUNT)]);
    // All but the first ones resume a session.
    let (full, resumed) =
        (number(&result, "/tls/full_handshakes"), number(&result, "/tls/resumed_handshakes"));
    assert_eq!(full + resumed, COUNT, "{result:#}");
    assert!(resumed > COUNT / 2, "{result:#}");
    few["load"]["tls"]["resumption"] = json!(false);
    expect(&run(&few), &[("/tls/full_handshakes", COUNT), ("/tls/resumed_handshakes", 0)]);

    let mut engine = engine(1);
    for opened in [2, 0, 0] {
        let result = run_on(&mut engine, &order3(&server, COUNT));
        expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", opened)]);
    }
}

#[test]
fn a_connection_closed_between_slots_is_opened_again() {
    let server = Quic::start(|mut session| {
        for _ in 0..COUNT {
            if let Some(id) = session.request() {
                session.answer(id, 200, BODY);
            }
        }
        std::thread::sleep(Duration::from_millis(50));
        session.close(0x100);
    });
    let mut engine = engine(1);
    let load = server.load(json!({"streams": 4}));
    for _ in 0..3 {
        let result = run_on(&mut engine, &order(&server.url(), COUNT, load.clone()));
        expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", 1)]);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn whom_to_trust_is_as_of_https() {
    let server = answering();
    let mut order = order3(&server, COUNT);
    let authority = Authority::new();
    order["load"]["tls"] = json!({"ca_file": authority.file()});
    refused(&order, "nobody trusted has issued it");
    order["load"]["tls"] = json!({"verify": false});
    expect(&run(&order), &[("/requests/completed", COUNT)]);

    for (issued, why) in [
        (authority.issue("another.example"), "it is for another name"),
        (authority.issue_expired("127.0.0.1"), "it has expired"),
    ] {
        let (own, trusted) = (Authority::new(), authority.file());
        let script = |mut session: Session| session.answer_all(BODY);
        let server = Quic::with(own, &issued, Begins::default(), script);
        let mut order = order3(&server, COUNT);
        order["load"]["tls"] = json!({"ca_file": trusted});
        refused(&order, why);
    }
}

/// Nothing is sent, and the reason is said.
fn refused(order: &Value, wanted: &str) {
    let result = run(order);
    expect(&result, &[("/requests/sent", 0), ("/connections/opened", 0)]);
    assert_eq!(result["ended_by"], "unreachable");
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains(wanted), "{samples}");
}

#[test]
fn what_is_in_flight_at_the_end_is_unanswered_and_drained() {
    let server = Quic::start(|mut session| {
        while let Some(id) = session.request() {
            if session.number > 0 {
                std::thread::sleep(Duration::from_millis(100));
                session.answer(id, 200, BODY);
            }
        }
    });
    let mut order = order3(&server, 1);
    order["load"]["timeout_s"] = json!(0.8);
    order["count"] = Value::Null;
    order["duration_s"] = json!(0.3);
    let result = run_on(&mut engine(1), &order);
    assert_eq!(number(&result, "/requests/sent") - number(&result, "/requests/completed"), 6);
    expect(&result, &[("/requests/unanswered", 6), ("/requests/drained", 3)]);
}

/// Servers may say more before an answer, and after it.
#[test]
fn preliminary_answers_and_trailers_are_no_answers() {
    let server = Quic::start(|mut session| {
        while let Some(id) = session.request() {
            let unknown = framed(0x21, b"grease");
            let mut section = qpack::PREFIX.to_vec();
            qpack::encode("x-checksum", "1", &mut section);
            let (early, trailers) = (head(103, None), framed(1, &section));
            let whole = [head(200, Some(13)), data(BODY), unknown.clone(), trailers].concat();
            session.write(id, &[unknown, early, whole].concat(), true);
        }
    });
    let result = run(&order3(&server, COUNT));
    expect(&result, &[("/requests/completed", COUNT), ("/bytes/body", 13 * COUNT)]);
}
