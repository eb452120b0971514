//! HTTP/2 against servers that do what a test says, frame by frame.

mod failures;
mod open;
mod requests;
mod rules;

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::layers::frames::{Frames, MAX_CONCURRENT_STREAMS, NO_ERROR};
use crate::layers::http2;
use crate::layers::secure::Secure;
use crate::support::{Server, engine, expect, order, run, run_on};
use serde_json::{Value, json};

const COUNT: u64 = 20;
const BODY: &[u8] = b"Hello, World!";

/// A server over cleartext; `script` gets each connection when it has begun.
pub fn server(
    settings: &'static [(u16, u32)],
    script: impl Fn(Frames<TcpStream>, usize) + Send + Sync + 'static,
) -> Server {
    Server::start(move |client| {
        let number = client.number;
        if let Some(frames) = Frames::begin(client.stream, settings) {
            script(frames, number);
        }
    })
}

fn answering() -> Server {
    server(&[], |mut frames, _| frames.answer_all(BODY))
}

/// An order over two connections with three streams each.
fn order2(server: &Server, count: u64) -> Value {
    order(&server.url(), count, http2(2, 3))
}

#[test]
fn streams_share_connections() {
    let server = answering();
    let mut order = order2(&server, 100);
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
            ("/http2/streams", 3),
            ("/by_status/200", 100),
        ],
    );
    assert_eq!(result["protocol"], "http2");
    assert!(result.get("tls").is_none() && result.get("tls_handshake_us").is_none());
    order["requests"][0]["expect"] = json!({"status": [404]});
    expect(&run(&order), &[("/failures/status", 100), ("/connections/opened", 2)]);
    order["requests"][0]["expect"] = json!({"body_bytes": 12});
    expect(&run(&order), &[("/failures/body", 100)]);
}

#[test]
fn a_count_is_exact_with_more_streams_than_requests() {
    let server = answering();
    let result = run_on(&mut engine(2), &order(&server.url(), 5, http2(3, 50)));
    expect(&result, &[("/requests/sent", 5), ("/requests/completed", 5)]);
}

#[test]
fn the_server_says_how_many_streams_there_may_be() {
    let too_many = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&too_many);
    let server = server(&[(MAX_CONCURRENT_STREAMS, 1)], move |mut frames, _| {
        while let Some(id) = frames.request() {
            seen.fetch_add(usize::from(frames.another_comes()), Ordering::Relaxed);
            frames.answer(id, BODY);
        }
    });
    let result = run(&order(&server.url(), COUNT, http2(1, 5)));
    expect(&result, &[("/requests/completed", COUNT), ("/http2/streams_allowed", 1)]);
    expect(&result, &[("/http2/refused_streams", 0), ("/connections/opened", 1)]);
    assert_eq!(too_many.load(Ordering::Relaxed), 0);
}

#[test]
fn connections_carry_as_many_requests_as_asked_and_stay_between_slots() {
    let server = answering();
    let mut few = order(&server.url(), COUNT, http2(1, 2));
    few["load"]["keepalive"] = json!(4);
    let result = run(&few);
    expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", COUNT / 4)]);
    expect(&result, &[("/keepalive/server_closed", 0)]);
    few["load"]["keepalive"] = json!("never");
    expect(&run(&few), &[("/requests/completed", COUNT), ("/connections/opened", COUNT)]);

    let mut engine = engine(1);
    for opened in [2, 0, 0] {
        let result = run_on(&mut engine, &order2(&server, COUNT));
        expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", opened)]);
    }
}

#[test]
fn a_connection_closed_between_slots_is_opened_again() {
    let server = server(&[], |mut frames, _| {
        for _ in 0..COUNT {
            if let Some(id) = frames.request() {
                frames.answer(id, BODY);
            }
        }
        frames.go_away((2 * COUNT - 1) as u32, NO_ERROR);
    });
    let mut engine = engine(1);
    for _ in 0..3 {
        let result = run_on(&mut engine, &order(&server.url(), COUNT, http2(1, 4)));
        expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", 1)]);
    }
}

#[test]
fn the_same_over_tls() {
    let secure = Secure::start(&["h2"], |session| {
        if let Some(mut frames) = Frames::begin(session.stream, &[]) {
            frames.answer_all(BODY);
        }
    });
    let load = json!({"protocol": "http2", "streams": 4, "connections": 2});
    let result = run(&order(&secure.url(), 100, secure.trusting(load)));
    expect(
        &result,
        &[("/requests/completed", 100), ("/connections/opened", 2), ("/tls_handshake_us/count", 2)],
    );
}

#[test]
fn what_is_in_flight_at_the_end_is_unanswered_and_drained() {
    let server = server(&[], |mut frames, number| {
        while let Some(id) = frames.request() {
            if number > 0 {
                std::thread::sleep(Duration::from_millis(100));
                frames.answer(id, BODY);
            }
        }
    });
    let mut order = order2(&server, 1);
    order["load"]["timeout_s"] = json!(0.8);
    order["count"] = Value::Null;
    order["duration_s"] = json!(0.05);
    let mut engine = engine(1);
    let result = run_on(&mut engine, &order);
    expect(
        &result,
        &[("/requests/sent", 6), ("/requests/unanswered", 6), ("/requests/drained", 3)],
    );
    // The connection with answers is kept, the other one isn't.
    expect(&run_on(&mut engine, &order), &[("/connections/opened", 1)]);
}
