//! Servers that break the rules of gRPC: counts are exact, nothing hangs, nothing is kept.

use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http2::server;
use crate::layers::frames::{Frames, INTERNAL_ERROR};
use crate::layers::http2;
use crate::support::{Server, expect, merge, order, run};

const COUNT: u64 = 12;
const HEAD: [(&str, &str); 2] = [(":status", "200"), ("content-type", "application/grpc")];
const OK: [(&str, &str); 1] = [("grpc-status", "0")];
const HI: &[u8] = b"\0\0\0\0\x02hi";

/// Each call is answered by `answer`, which gets the call's stream.
fn answering(answer: impl Fn(&mut Frames<TcpStream>, u32) + Send + Sync + 'static) -> Server {
    server(&[], move |mut frames, _| {
        while let Some(id) = frames.request() {
            answer(&mut frames, id);
        }
    })
}

fn load(server: &Server, more: Value) -> Value {
    let url = format!("grpc://{}/a.B/C", server.address);
    let mut asked = order(&url, COUNT, http2(2, 2));
    asked["requests"][0]["body"] = json!({"base64": "AAAAAAA="});
    merge(&mut asked, more);
    run(&asked)
}

/// Every call ends in the same failure, for a reason that is named.
fn all_fail(server: &Server, failure: &str, why: &str) {
    let result = load(server, json!({"load": {"timeout_s": 0.3}}));
    let path = format!("/failures/{failure}");
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
    assert_eq!(result["ended_by"], "count");
    assert!(result["failure_samples"].to_string().contains(why), "{why}: {result:#}");
}

#[test]
fn wrong_messages() {
    for (body, failure, why) in [
        (&b"\0\0\0\0\x05hi"[..], "truncated", "in the middle of a message"),
        (b"\0\0\0", "truncated", "in the middle of a message"),
        (b"\0\xff\xff\xff\xffhi", "truncated", "in the middle of a message"),
        (b"\x01\0\0\0\x02hi", "malformed", "no grpc-encoding says how"),
        (b"\x07\0\0\0\x02hi", "malformed", "neither 0 nor 1"),
    ] {
        let server = answering(move |frames, id| {
            frames.fields(id, &HEAD, false);
            frames.data(id, body, false);
            frames.fields(id, &OK, true);
        });
        all_fail(&server, failure, why);
    }
}

#[test]
fn wrong_heads_and_trailers() {
    let without_trailers = answering(|frames, id| {
        frames.fields(id, &HEAD, false);
        frames.data(id, HI, true);
    });
    all_fail(&without_trailers, "status", "without a grpc-status");
    let no_number = answering(|frames, id| {
        frames.fields(id, &HEAD, false);
        frames.data(id, HI, false);
        frames.fields(id, &[("grpc-status", "-1")], true);
    });
    all_fail(&no_number, "status", "grpc-status -1");
    let in_the_head = answering(|frames, id| {
        frames.fields(id, &[&HEAD[..], &[("grpc-status", "14")]].concat(), true);
    });
    all_fail(&in_the_head, "status", "14 UNAVAILABLE");
    let a_page = answering(|frames, id| {
        frames.fields(id, &[(":status", "200"), ("content-type", "text/html")], false);
        frames.data(id, b"<html>", true);
    });
    all_fail(&a_page, "malformed", "content-type isn't application/grpc");
    let an_error = answering(|frames, id| frames.fields(id, &[(":status", "503")], true));
    all_fail(&an_error, "status", "status 503 instead of 2xx");
    let long = "x".repeat(120);
    let talkative = answering(move |frames, id| {
        let status = [("grpc-status", "13"), ("grpc-message", long.as_str())];
        frames.fields(id, &[&HEAD[..], &status].concat(), true);
    });
    let result = load(&talkative, json!({}));
    expect(&result, &[("/failures/status", COUNT), ("/grpc_by_status/13", COUNT)]);
    assert!(!result.to_string().contains(&"x".repeat(101)));
}

#[test]
fn huge_messages_are_waited_for_until_the_timeout() {
    let announcing = answering(|frames, id| {
        frames.fields(id, &HEAD, false);
        frames.data(id, b"\0\xff\xff\xff\xff", false);
        for _ in 0..20 {
            frames.data(id, &[0; 16_000], false);
        }
    });
    all_fail(&announcing, "timeout", "no full answer");
}

#[test]
fn connections_that_end_early() {
    let half = server(&[], |mut frames, _| {
        if let Some(id) = frames.request() {
            frames.fields(id, &HEAD, false);
            frames.data(id, HI, false);
            let _ = frames.stream.shutdown(Shutdown::Write);
            while frames.next().is_some() {}
        }
    });
    let result = load(&half, json!({"load": {"timeout_s": 0.3}}));
    expect(&result, &[("/requests/completed", 0), ("/requests/sent", COUNT)]);
    let begun = &result["failures"]["truncated"];
    assert!(begun.as_u64().is_some_and(|begun| begun > 0), "{result:#}");
}

/// Resets of streams that are over mean nothing.
#[test]
fn floods_of_resets() {
    let answering = answering(|frames, id| {
        frames.fields(id, &HEAD, false);
        frames.data(id, HI, false);
        frames.fields(id, &OK, true);
        for _ in 0..1_000 {
            frames.reset(id, INTERNAL_ERROR);
        }
    });
    let began = Instant::now();
    let result = load(&answering, json!({}));
    expect(&result, &[("/requests/completed", COUNT), ("/grpc_by_status/0", COUNT)]);
    assert!(began.elapsed() < Duration::from_secs(30));
    let resetting = self::answering(|frames, id| frames.reset(id, INTERNAL_ERROR));
    all_fail(&resetting, "reset", "INTERNAL_ERROR");
}

/// Compressed messages are counted as they come; nothing is unpacked under load.
#[test]
fn bombs_stay_packed() {
    let bomb = answering(|frames, id| {
        let head = [&HEAD[..], &[("grpc-encoding", "gzip")]].concat();
        frames.fields(id, &head, false);
        frames.data(id, b"\x01\0\0\0\x04bomb", false);
        frames.fields(id, &OK, true);
    });
    let result = load(&bomb, json!({}));
    expect(&result, &[("/requests/completed", COUNT), ("/bytes/body", 9 * COUNT)]);
}
