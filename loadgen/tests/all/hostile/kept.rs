//! Kept connections that a server closes just as they are used, or that bring stale events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::COUNT;
use crate::layers::frames::{Frames, NO_ERROR};
use crate::layers::http2;
use crate::support::{HELLO, Server, expect, number, order, run};

/// How a server ends a kept connection on which a request has come.
#[derive(Clone, Copy)]
enum End {
    Close,
    Reset,
    Within,
}

/// Answers four requests on each connection and leaves the fifth without an answer.
fn forgetful(end: End) -> Server {
    Server::start(move |mut client| {
        for _ in 0..4 {
            if client.request().is_none() {
                return;
            }
            client.write(HELLO);
        }
        client.request();
        match end {
            End::Close => {}
            End::Reset => client.reset(),
            End::Within => client.write(b"HTTP/1.1 200 OK\r\nContent-Le"),
        }
    })
}

fn asking(server: &Server, method: &str) -> Value {
    let request = json!({"url": server.url(), "method": method});
    run(&order(&server.url(), COUNT, json!({"requests": [request]})))
}

#[test]
fn a_request_on_a_connection_that_was_just_closed_is_asked_once_more() {
    for end in [End::Close, End::Reset] {
        for method in ["GET", "PUT"] {
            let result = asking(&forgetful(end), method);
            expect(
                &result,
                &[
                    ("/requests/sent", COUNT),
                    ("/requests/completed", COUNT),
                    ("/requests/retried", COUNT / 4 - 1),
                    ("/whole/retried", COUNT / 4 - 1),
                    ("/connections/opened", COUNT / 4),
                    ("/keepalive/server_closed", COUNT / 4 - 1),
                    ("/failures/reset", 0),
                ],
            );
        }
    }
}

#[test]
fn what_may_have_had_an_effect_is_not_asked_again() {
    let result = asking(&forgetful(End::Close), "POST");
    expect(&result, &[("/requests/retried", 0), ("/failures/reset", COUNT / 5)]);
    // An answer that has begun is one that failed.
    let result = asking(&forgetful(End::Within), "GET");
    expect(&result, &[("/requests/retried", 0), ("/failures/truncated", COUNT / 5)]);
}

#[test]
fn a_request_is_asked_again_once_only() {
    let answers = Arc::new(AtomicBool::new(true));
    let server = Server::start(move |mut client| {
        client.request();
        if answers.swap(false, Ordering::Relaxed) {
            client.write(HELLO);
            client.request();
        }
    });
    let result = run(&order(&server.url(), 2, json!({})));
    expect(&result, &[("/requests/sent", 2), ("/requests/completed", 1)]);
    expect(&result, &[("/requests/retried", 1), ("/failures/reset", 1)]);
}

/// What was on its way when the slot ended is asked again as well.
#[test]
fn requests_are_asked_again_after_the_end() {
    let plain = Server::start(|mut client| {
        if client.number > 0 {
            return client.answer_all(HELLO);
        }
        client.request();
        client.write(HELLO);
        client.request();
        std::thread::sleep(Duration::from_millis(200));
    });
    let parallel = Server::start(|client| {
        let number = client.number;
        let Some(mut frames) = Frames::begin(client.stream, &[]) else { return };
        let Some(first) = frames.request() else { return };
        frames.answer(first, b"x");
        if number > 0 {
            return frames.answer_all(b"x");
        }
        frames.request();
        std::thread::sleep(Duration::from_millis(200));
        frames.go_away(first, NO_ERROR);
    });
    for (server, load) in [(plain, json!({})), (parallel, http2(1, 3))] {
        let mut order = order(&server.url(), 1, load);
        order["count"] = Value::Null;
        order["duration_s"] = json!(0.1);
        let result = run(&order);
        let unanswered = number(&result, "/requests/unanswered");
        expect(&result, &[("/whole/failures/reset", 0), ("/requests/drained", unanswered)]);
        assert!(unanswered > 0 && number(&result, "/whole/retried") > 0, "{result:#}");
    }
}

/// A connection that HTTP/2 shares may be closed without a word, too.
#[test]
fn streams_of_a_closed_connection_are_asked_again() {
    let server = Server::start(|client| {
        let Some(mut frames) = Frames::begin(client.stream, &[]) else { return };
        for _ in 0..4 {
            let Some(id) = frames.request() else { return };
            frames.answer(id, b"x");
        }
        frames.request();
        frames.close();
    });
    let result = run(&order(&server.url(), COUNT, http2(1, 1)));
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", COUNT)]);
    expect(&result, &[("/requests/retried", COUNT / 4 - 1), ("/failures/reset", 0)]);
}

/// An answer that was read to its end while its last event was still to come.
#[test]
fn a_stale_event_closes_no_connection() {
    let server = Server::start(|mut client| {
        let chunk = [b"2000\r\n".as_slice(), &[b'x'; 0x2000], b"\r\n"].concat();
        while client.request().is_some() {
            client.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            (0..128).for_each(|_| client.write(&chunk));
            client.write(b"0\r\n\r\n");
        }
    });
    let load = json!({"think": {"mean_s": 0.001, "distribution": "constant"}, "connections": 2});
    let result = run(&order(&server.url(), 200, json!({"load": load})));
    expect(&result, &[("/requests/completed", 200), ("/keepalive/server_closed", 0)]);
    expect(&result, &[("/connections/opened", 2)]);
}
