//! Servers that misbehave: counts are exact, nothing hangs, nothing loops.

mod absence;
mod answers;
mod connections;
mod idle;
mod kept;
mod users;
use crate::support::{Server, expect, order, run};
use serde_json::json;

const COUNT: u64 = 20;

/// Every request ends in the same failure.
fn all_fail(server: &Server, failure: &str) {
    let result = run(&order(&server.url(), COUNT, json!({"load": {"connections": 2}})));
    let path = format!("/failures/{failure}");
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
    assert_eq!(result["ended_by"], "count");
    assert!(!result["failure_samples"].as_array().expect("a list").is_empty(), "{result}");
}

/// Every request is answered validly.
fn all_complete(server: &Server, count: u64, body_bytes: u64) {
    let more = json!({"requests": [{"url": server.url(), "expect": {"body_bytes": body_bytes}}]});
    let result = run(&order(&server.url(), count, more));
    expect(
        &result,
        &[
            ("/requests/sent", count),
            ("/requests/completed", count),
            ("/bytes/body", count * body_bytes),
        ],
    );
}
