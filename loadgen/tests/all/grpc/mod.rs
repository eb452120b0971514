//! gRPC over cleartext HTTP/2.

mod calls;
mod hostile;

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::http2::server;
use crate::layers::http2;
use crate::support::{expect, order, run};

const BODY: &[u8] = b"Hello, World!";

/// gRPC fails with status 200.
#[test]
fn failures_of_grpc_are_failures() {
    const KIND: (&str, &str) = ("content-type", "application/grpc");
    let server = server(&[], |mut frames, _| {
        let mut nth = 0;
        while let Some(id) = frames.request() {
            nth += 1;
            let status = if nth % 2 == 0 { "14" } else { "0" };
            if nth % 3 == 0 {
                // Without a body all is in the head.
                frames.fields(id, &[(":status", "200"), KIND, ("grpc-status", status)], true);
                continue;
            }
            frames.fields(id, &[(":status", "200"), KIND], false);
            frames.data(id, BODY, false);
            frames.fields(id, &[("grpc-status", status), ("grpc-message", "gone")], true);
        }
    });
    let result = run(&order(&server.url(), 12, http2(1, 1)));
    expect(&result, &[("/requests/completed", 6), ("/failures/status", 6)]);
    expect(&result, &[("/by_status/200", 12), ("/connections/opened", 1)]);
    expect(&result, &[("/grpc_by_status/0", 6), ("/grpc_by_status/14", 6)]);
    expect(&result, &[("/whole/grpc_by_status/14", 6)]);
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains("grpc-status 14 UNAVAILABLE instead of 0 (gone)"), "{samples}");
}

#[test]
fn what_is_no_grpc_has_no_status_of_it() {
    let server = server(&[], |mut frames, _| frames.answer_all(BODY));
    let result = run(&order(&server.url(), 3, http2(1, 1)));
    assert!(result.get("grpc_by_status").is_none(), "{result:#}");
    assert_eq!(result["by_status"], json!({"200": 3}));
}

/// Of several calls on one connection, each message is of its own.
#[test]
fn messages_of_streams_are_timed_each() {
    const MESSAGES: u64 = 4;
    const GAP: Duration = Duration::from_millis(10);
    let server = server(&[], |mut frames, _| {
        while let Some(first) = frames.request() {
            let ids = [Some(first), frames.request()];
            for id in ids.iter().flatten() {
                frames.fields(
                    *id,
                    &[(":status", "200"), ("content-type", "application/grpc")],
                    false,
                );
            }
            for _ in 0..MESSAGES {
                sleep(GAP);
                for id in ids.iter().flatten() {
                    // The prefix comes in a frame of its own.
                    frames.data(*id, b"\0\0\0\0", false);
                    frames.data(*id, b"\x0dHello, World!", false);
                }
            }
            for id in ids.iter().flatten() {
                frames.fields(*id, &[("grpc-status", "0")], true);
            }
        }
    });
    let mut asked = order(&server.url(), 8, http2(1, 2));
    asked["requests"][0]["events"] = json!("grpc");
    let result = run(&asked);
    expect(
        &result,
        &[
            ("/events/responses", 8),
            ("/events/time_to_first_us/count", 8),
            ("/events/gap_us/count", 8 * (MESSAGES - 1)),
            ("/events/per_event_us/count", 8),
        ],
    );
    let events = &result["events"];
    assert_eq!(events["per_response"], json!(MESSAGES as f64));
    // A sleep is never too short.
    let time = |name: &str, figure: &str| events[name][figure].as_f64().expect("a time");
    assert!(time("time_to_first_us", "min") >= GAP.as_micros() as f64 * 0.9, "{events:#}");
    assert!(time("gap_us", "mean") >= GAP.as_micros() as f64 * 0.9, "{events:#}");
}

/// A message that comes with the end of its call is timed as well.
#[test]
fn unary_calls_have_one_message() {
    let server = server(&[], |mut frames, _| {
        while let Some(id) = frames.request() {
            frames.head(id, 200, None, false);
            frames.data(id, b"\0\0\0\0\x01x", true);
        }
    });
    let mut asked = order(&server.url(), 6, http2(1, 3));
    asked["requests"][0]["events"] = json!("grpc");
    let result = run(&asked);
    let counts = [("/events/responses", 6), ("/events/time_to_first_us/count", 6)];
    expect(&result, &counts);
    expect(&result, &[("/events/gap_us/count", 0), ("/events/per_event_us/count", 0)]);
}
