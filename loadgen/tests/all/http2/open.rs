//! Open loops over HTTP/2: a request takes a stream of any connection.

use std::time::Duration;

use serde_json::{Value, json};

use super::{BODY, answering, server};
use crate::layers::frames::MAX_CONCURRENT_STREAMS;
use crate::layers::http2;
use crate::support::{engine, expect, number, order, run, run_on};

#[test]
fn an_open_loop_sends_what_is_due_and_omits_nothing() {
    let open = |arrivals: Value| {
        json!({"load": {"loop": "open", "connections": 2, "streams": 3, "timeout_s": 0.6,
            "protocol": "http2", "arrivals": arrivals}})
    };
    let answering = answering();
    let arrivals = json!({"stages": [{"rate_per_s": 1000.0}]});
    let result = run_on(&mut engine(2), &order(&answering.url(), 200, open(arrivals)));
    expect(&result, &[("/requests/completed", 200), ("/latency_us/count", 200)]);

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
            ("/latency_us/count", 30),
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
    assert!(10.0 * p50("send_delay_us") < p50("latency_us"), "{result:#}");
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
