//! Requests that get no answer over HTTP/2, and servers that don't speak it.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{BODY, COUNT, order2, server};
use crate::layers::frames::{
    CANCEL, ENHANCE_YOUR_CALM, MAX_CONCURRENT_STREAMS, NO_ERROR, REFUSED_STREAM,
};
use crate::layers::http2;
use crate::layers::secure::Secure;
use crate::support::{HELLO, Server, expect, number, order, run};

/// Every request ends in the same failure.
pub fn all_fail(server: &Server, failure: &str) -> Value {
    let mut order = order2(server, COUNT);
    order["load"]["timeout_s"] = json!(0.2);
    let result = run(&order);
    let path = format!("/failures/{failure}");
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
    result
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
    assert!(number(&result, "/http2/retried") > 0, "{result:#}");
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
    (order["ramp_up_s"], order["duration_s"]) = (json!(0.05), json!(0.05));
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
    expect(&result, &[("/http2/retried", 0)]);
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
    expect(&result, &[("/latency_us/count", COUNT), ("/service_time_us/count", 0)]);
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
