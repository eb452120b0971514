//! HTTP/2 against servers that do what a test says, frame by frame.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::layers::frames::{
    CANCEL, ENHANCE_YOUR_CALM, Frames, MAX_CONCURRENT_STREAMS, NO_ERROR, REFUSED_STREAM,
};
use crate::layers::http2;
use crate::layers::secure::Secure;
use crate::support::{HELLO, Server, engine, expect, number, order, run, run_on};
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

/// Every request ends in the same failure.
fn all_fail(server: &Server, failure: &str) -> Value {
    let mut order = order2(server, COUNT);
    order["load"]["timeout_s"] = json!(0.2);
    let result = run(&order);
    let path = format!("/failures/{failure}");
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
    result
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
fn requests_the_server_had_not_seen_are_asked_again() {
    // Three answers for each connection, then the end, with requests still on their way.
    let server = server(&[], |mut frames, _| {
        let mut last = 0;
        for _ in 0..3 {
            let Some(id) = frames.request() else { return };
            frames.answer(id, BODY);
            last = id;
        }
        frames.go_away(last, NO_ERROR);
        while frames.request().is_some() {}
    });
    let result = run(&order(&server.url(), 30, http2(1, 5)));
    expect(&result, &[("/requests/sent", 30), ("/requests/completed", 30)]);
    expect(&result, &[("/connections/opened", 10), ("/service_time_us/count", 30)]);
    assert!(number(&result, "/http2/asked_again") > 0, "{result:#}");
    assert!(number(&result, "/http2/go_aways") >= 9, "{result:#}");
}

/// What waits to be asked again at an edge of the window is on its way (`run` checks the sum).
#[test]
fn requests_that_are_asked_again_are_counted_once_at_the_edges_of_windows() {
    let server = server(&[], |mut frames, _| {
        let Some(first) = frames.request() else { return };
        frames.answer(first, BODY);
        frames.go_away(first, NO_ERROR);
        while frames.request().is_some() {}
    });
    let mut order = order(&server.url(), 1, http2(4, 20));
    order["count"] = Value::Null;
    (order["lead_in_s"], order["duration_s"]) = (json!(0.05), json!(0.05));
    for _ in 0..5 {
        let result = run(&order);
        assert!(number(&result, "/requests/carried") > 0, "{result:#}");
        expect(&result, &[("/whole/failures/reset", 0), ("/whole/unanswered", 0)]);
    }
}

#[test]
fn a_server_that_never_sees_a_request_is_not_asked_for_ever() {
    let server = server(&[], |mut frames, _| {
        if frames.request().is_some() {
            frames.go_away(0, ENHANCE_YOUR_CALM);
        }
    });
    let result = all_fail(&server, "reset");
    expect(&result, &[("/http2/asked_again", 0)]);
}

#[test]
fn streams_that_are_reset_or_refused() {
    for (code, refused) in [(CANCEL, false), (REFUSED_STREAM, true)] {
        let server = server(&[], move |mut frames, _| {
            while let Some(id) = frames.request() {
                frames.reset(id, code);
            }
        });
        let result = all_fail(&server, "reset");
        let (refused, reset) = if refused { (COUNT, 0) } else { (0, COUNT) };
        expect(&result, &[("/http2/refused_streams", refused), ("/http2/reset_streams", reset)]);
        expect(&result, &[("/connections/opened", 2)]);
    }
    // One of three requests is reset in the middle of its body, and the others don't mind.
    let server = server(&[], |mut frames, _| {
        let mut nth = 0;
        while let Some(id) = frames.request() {
            nth += 1;
            if nth % 3 == 0 {
                frames.head(id, 200, Some(100), false);
                frames.data(id, BODY, false);
                frames.reset(id, CANCEL);
            } else {
                frames.answer(id, BODY);
            }
        }
    });
    let result = run(&order(&server.url(), 30, http2(1, 3)));
    expect(&result, &[("/requests/completed", 20), ("/failures/reset", 10)]);
}

#[test]
fn bodies_that_are_not_as_long_as_they_say() {
    let short = server(&[], |mut frames, _| {
        while let Some(id) = frames.request() {
            frames.head(id, 200, Some(100), false);
            frames.data(id, BODY, true);
        }
    });
    let result = all_fail(&short, "truncated");
    expect(&result, &[("/connections/opened", 2)]);
    let contradictory = server(&[], |mut frames, _| {
        while let Some(id) = frames.request() {
            frames.head(id, 200, Some(100), true);
        }
    });
    all_fail(&contradictory, "malformed");
    let closed = server(&[], |mut frames, _| {
        if let Some(id) = frames.request() {
            frames.head(id, 200, Some(100), false);
            frames.data(id, BODY, false);
        }
        frames.close();
    });
    // Requests beside the first one find the end without an answer.
    let result = run(&order(&closed.url(), COUNT, http2(1, 3)));
    let of = |name: &str| number(&result, &format!("/failures/{name}"));
    assert!(of("truncated") > 0, "{result:#}");
    assert_eq!(of("truncated") + of("reset"), COUNT, "{result:#}");
}

#[test]
fn servers_that_close_or_talk_nonsense() {
    let closing = server(&[], |mut frames, _| {
        frames.request();
    });
    all_fail(&closing, "reset");
    let nonsense = server(&[], |mut frames, _| {
        if frames.request().is_some() {
            // DATA on the connection itself.
            frames.frame(0, 0, 0, b"nonsense");
            frames.request();
        }
    });
    all_fail(&nonsense, "malformed");
}

#[test]
fn a_server_without_answers_runs_into_the_timeout() {
    let server = server(&[], |mut frames, _| while frames.request().is_some() {});
    let result = all_fail(&server, "timeout");
    expect(&result, &[("/response_time_us/count", COUNT), ("/service_time_us/count", 0)]);
}

#[test]
fn servers_without_http2_are_refused() {
    let refused = |order: &Value, wanted: &str| {
        let result = run(order);
        expect(&result, &[("/requests/sent", 0), ("/connections/opened", 0)]);
        assert_eq!(result["ended_by"], "unreachable");
        let samples = result["failure_samples"].to_string();
        assert!(samples.contains(wanted), "{samples}");
    };
    let plain = Server::answering(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    refused(&order2(&plain, COUNT), "prior knowledge");
    for alpn in [&[][..], &["http/1.1"]] {
        let secure = Secure::start(alpn, |mut session| session.answer_all(HELLO));
        let more = secure.trusting(json!({"protocol": "http2"}));
        refused(&order(&secure.url(), COUNT, more), "ALPN h2");
    }
    let silent = Server::start(|mut client| while client.request().is_some() {});
    let mut patient = order2(&silent, COUNT);
    patient["load"]["timeout_s"] = json!(0.2);
    refused(&patient, "not ready within");
    let closing = Server::start(drop);
    let mut patient = order2(&closing, COUNT);
    patient["load"]["timeout_s"] = json!(0.2);
    refused(&patient, "connect to");
    assert!(closing.connections.load(Ordering::Relaxed) < 100);
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

#[test]
fn an_open_loop_sends_what_is_due_and_omits_nothing() {
    let open = |arrivals: Value| {
        json!({"load": {"loop": "open", "connections": 2, "streams": 3, "timeout_s": 0.6,
            "protocol": "http2", "arrivals": arrivals}})
    };
    let answering = answering();
    let arrivals = json!({"stages": [{"rate_per_s": 1000.0}]});
    let result = run_on(&mut engine(2), &order(&answering.url(), 200, open(arrivals)));
    expect(&result, &[("/requests/completed", 200), ("/response_time_us/count", 200)]);

    let hanging = server(&[], |mut frames, _| while frames.request().is_some() {});
    let mut more = open(json!({"stages": [{"rate_per_s": 100.0, "for_s": 0.3}]}));
    more["count"] = Value::Null;
    let result = run(&order(&hanging.url(), 1, more));
    expect(
        &result,
        &[
            ("/requests/sent", 6),
            ("/requests/unanswered", 6),
            ("/requests/unsent", 24),
            ("/response_time_us/count", 30),
        ],
    );
}

/// What is due goes to a connection that has a stream left, not behind a request on another one.
#[test]
fn an_open_loop_waits_for_no_stream_while_another_connection_has_one() {
    let server = server(&[(MAX_CONCURRENT_STREAMS, 1)], |mut frames, number| {
        while let Some(id) = frames.request() {
            // The first connection is stuck.
            if number > 0 {
                frames.answer(id, BODY);
            }
        }
    });
    let mut order = order(&server.url(), 40, http2(2, 3));
    order["load"]["loop"] = json!("open");
    order["load"]["timeout_s"] = json!(0.4);
    order["load"]["arrivals"] = json!({"stages": [{"rate_per_s": 200.0}]});
    let result = run(&order);
    // Only what the stuck connection had taken on by itself.
    let timeouts = number(&result, "/failures/timeout");
    assert!(timeouts <= 2, "{result:#}");
    expect(&result, &[("/requests/completed", 40 - timeouts)]);
}

/// That a server allows few streams is its limit, not the client's.
#[test]
fn waiting_for_a_stream_is_no_lag_of_the_client() {
    let server = server(&[(MAX_CONCURRENT_STREAMS, 1)], |mut frames, _| {
        while let Some(id) = frames.request() {
            std::thread::sleep(Duration::from_millis(20));
            frames.answer(id, BODY);
        }
    });
    let mut order = order(&server.url(), 40, http2(1, 8));
    order["load"]["loop"] = json!("open");
    order["load"]["arrivals"] = json!({"stages": [{"rate_per_s": 1000.0}]});
    let result = run(&order);
    expect(&result, &[("/requests/completed", 40)]);
    // Half of the requests wait for 400 ms.
    let p50 = |times: &str| result[times]["p50"].as_f64().expect("a time");
    assert!(10.0 * p50("send_lag_us") < p50("response_time_us"), "{result:#}");
}

/// Requests on one connection were sent one after the other, and each has the same patience.
#[test]
fn every_stream_has_its_own_timeout() {
    let server = server(&[], |mut frames, _| while frames.request().is_some() {});
    let mut order = order(&server.url(), 1, http2(1, 20));
    order["load"]["timeout_s"] = json!(0.3);
    order["load"]["loop"] = json!("open");
    order["load"]["arrivals"] =
        json!({"times_s": (0..20).map(|n| f64::from(n) / 2000.0).collect::<Vec<_>>()});
    order["count"] = Value::Null;
    let result = run(&order);
    expect(&result, &[("/whole/failures/timeout", 20)]);
    assert!(result["drain_s"].as_f64() < Some(0.5), "{result:#}");
}

/// A request that gets no stream ends, too.
#[test]
fn waiting_for_a_stream_has_an_end() {
    let server = server(&[(MAX_CONCURRENT_STREAMS, 1)], |mut frames, _| {
        let Some(first) = frames.request() else { return };
        // It goes on for ever, a byte at a time.
        frames.head(first, 200, None, false);
        while frames.request().is_some() {}
    });
    let mut order = order(&server.url(), 3, http2(1, 3));
    order["load"]["timeout_s"] = json!(0.1);
    let result = run(&order);
    let of = |name: &str| number(&result, &format!("/failures/{name}"));
    assert_eq!(of("timeout") + of("connect"), 3, "{result:#}");
    assert_eq!(result["ended_by"], "count");
}
