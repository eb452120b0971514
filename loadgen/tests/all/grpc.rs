//! gRPC over cleartext HTTP/2.

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
