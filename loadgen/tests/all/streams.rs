//! Streamed answers: events are timed each, from servers whose delays are known.

use std::thread::sleep;
use std::time::Duration;

use serde_json::json;

use crate::support::{Client, Server, expect, order, run};

const FIRST: Duration = Duration::from_millis(30);
const GAP: Duration = Duration::from_millis(10);
const EVENTS: u64 = 5;
const COUNT: u64 = 8;

/// Answers each request with events at known times; the first line belongs to the head.
fn streaming(head: &'static str, event: fn(u64) -> String) -> Server {
    Server::start(move |mut client: Client| {
        while client.request().is_some() {
            client.write(format!("HTTP/1.1 200 OK\r\n{head}\r\n").as_bytes());
            sleep(FIRST);
            for number in 0..EVENTS {
                client.write(event(number).as_bytes());
                sleep(GAP);
            }
            if !head.contains("chunked") {
                return;
            }
            client.write(b"0\r\n\r\n");
        }
    })
}

fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn assert_times(result: &serde_json::Value) {
    let events = &result["events"];
    expect(
        result,
        &[
            ("/events/answers", COUNT),
            ("/events/time_to_first_us/count", COUNT),
            ("/events/gap_us/count", COUNT * (EVENTS - 1)),
        ],
    );
    assert_eq!(events["per_answer"], json!(EVENTS as f64), "{events:#}");
    // A sleep is never too short, so that the truth is at least that; how much more is the
    // machine's, and no test's.
    let least = |name: &str| events[name]["min"].as_f64().expect("a time");
    assert!(least("time_to_first_us") >= FIRST.as_micros() as f64 * 0.99, "{events:#}");
    let mean = |name: &str| events[name]["mean"].as_f64().expect("a time");
    assert!(mean("gap_us") >= GAP.as_micros() as f64 * 0.9, "{events:#}");
}

#[test]
fn server_sent_events_are_timed_each() {
    let server = streaming("Transfer-Encoding: chunked\r\n", |number| {
        chunk(&format!(": keep-alive\n\nevent: token\r\ndata: {number}\r\n\r\n"))
    });
    let mut asked = order(&server.url(), COUNT, json!({"load": {"connections": 2}}));
    asked["requests"][0]["events"] = json!("sse");
    assert_times(&run(&asked));
}

#[test]
fn lines_that_end_with_the_connection_are_timed_each() {
    let server = streaming("Connection: close\r\n", |number| match number {
        last if last == EVENTS - 1 => "{\"n\": \"last, without a line feed\"}".into(),
        number => format!("{{\"n\": {number}}}\n"),
    });
    let mut asked = order(&server.url(), COUNT, json!({}));
    asked["requests"][0]["events"] = json!("lines");
    let result = run(&asked);
    // The last line ends with the connection, a gap later.
    expect(&result, &[("/events/answers", COUNT)]);
    assert_times(&result);
}

#[test]
fn in_an_open_loop_the_first_event_counts_from_when_it_was_due() {
    let server =
        streaming("Transfer-Encoding: chunked\r\n", |number| chunk(&format!("data: {number}\n\n")));
    let stages = json!([{"rate_per_s": 100.0}]);
    let load = json!({"loop": "open", "connections": 1, "arrivals": {"stages": stages}});
    let mut asked = order(&server.url(), 3, json!({"load": load}));
    asked["requests"][0]["events"] = json!("sse");
    let result = run(&asked);
    // One connection, 10 ms apart: the second waits for the first one's 80 ms.
    let most = result["events"]["time_to_first_us"]["max"].as_f64().expect("a time");
    assert!(most >= 2.0 * 80_000.0 + 30_000.0 - 20_000.0 - 1000.0, "{}", result["events"]);
}

#[test]
fn streams_that_never_end_are_timed_all_the_same() {
    let server = Server::start(|mut client: Client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for _ in 0..200 {
            client.write(chunk("data: x\n\n").as_bytes());
            sleep(GAP);
        }
    });
    let load = json!({"load": {"timeout_s": 0.3}, "duration_s": 0.2, "count": null});
    let mut asked = order(&server.url(), 1, load);
    asked["requests"][0]["events"] = json!("sse");
    let result = run(&asked);
    let gaps = result["events"]["gap_us"]["count"].as_u64().expect("a count");
    assert!((3..=20).contains(&gaps), "{}", result["events"]);
    expect(&result, &[("/events/answers", 0)]);
}
