//! Streamed answers: events are timed each, from servers whose delays are known.

use std::io::Write;
use std::thread::sleep;
use std::time::Duration;

use loadgen::engine::Plan;
use loadgen::order::parse::parse;
use serde_json::{Value, json};

use crate::support::{Client, Server, engine, expect, number, order, run, run_plan};
use crate::{http2, layers};

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

fn float(result: &Value, path: &str) -> f64 {
    let value = result.pointer(path).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("{path} in {result}"))
}

fn assert_times(result: &serde_json::Value) {
    let events = &result["events"];
    expect(
        result,
        &[
            ("/events/responses", COUNT),
            ("/events/time_to_first_us/count", COUNT),
            ("/events/gap_us/count", COUNT * (EVENTS - 1)),
            ("/events/per_event_us/count", COUNT),
        ],
    );
    assert_eq!(events["per_response"], json!(EVENTS as f64), "{events:#}");
    // A sleep is never too short, so that the truth is at least that; how much more is the
    // machine's, and no test's.
    let least = |name: &str| events[name]["min"].as_f64().expect("a time");
    assert!(least("time_to_first_us") >= FIRST.as_micros() as f64 * 0.99, "{events:#}");
    let mean = |name: &str| events[name]["mean"].as_f64().expect("a time");
    assert!(mean("gap_us") >= GAP.as_micros() as f64 * 0.9, "{events:#}");
    assert!((mean("per_event_us") - mean("gap_us")).abs() <= 0.01 * mean("gap_us"), "{events:#}");
    let per_s = float(result, "/events/per_s");
    let measured_s = float(result, "/measured_s");
    assert!((per_s * measured_s - (COUNT * EVENTS) as f64).abs() < 0.1, "{events:#}");
    assert_eq!(events.get("goodput_rps"), None);
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

/// As vLLM and llama.cpp answer: who speaks, then tokens, why it ends, what it cost, and the end.
#[test]
fn tokens_of_language_models_are_timed_each() {
    let event = |data: &str| chunk(&format!("data: {data}\n\n"));
    let delta = |delta: &str| {
        format!(r#"{{"object":"chat.completion.chunk","choices":[{{"delta":{delta}}}]}}"#)
    };
    let server = Server::start(move |mut client: Client| {
        while client.request().is_some() {
            client.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\
                  Transfer-Encoding: chunked\r\n\r\n",
            );
            client.write(event(&delta(r#"{"role":"assistant","content":""}"#)).as_bytes());
            sleep(FIRST);
            for _ in 0..EVENTS {
                client.write(event(&delta(r#"{"content":"word "}"#)).as_bytes());
                sleep(GAP);
            }
            client.write(event(&delta("{}")).as_bytes());
            client.write(event(r#"{"choices":[],"usage":{"completion_tokens":5}}"#).as_bytes());
            client.write(event("[DONE]").as_bytes());
            client.write(b"0\r\n\r\n");
        }
    });
    let mut asked = order(&server.url(), COUNT, json!({"load": {"connections": 2}}));
    asked["requests"][0]["events"] = json!("sse");
    assert_times(&run(&asked));
}

#[test]
fn goodput_is_of_responses_that_keep_all_limits() {
    let server =
        streaming("Transfer-Encoding: chunked\r\n", |number| chunk(&format!("data: {number}\n\n")));
    let goodput = |limits: Value| {
        let mut asked = order(&server.url(), COUNT, json!({"goodput": limits}));
        asked["requests"][0]["events"] = json!("sse");
        let result = run(&asked);
        let share = float(&result, "/events/goodput_rps") / float(&result, "/throughput_rps");
        (share * 100.0).round()
    };
    let all = json!({"first_event_s": 600.0, "per_event_s": 600.0, "latency_s": 600.0});
    assert_eq!(goodput(all), 100.0);
    // A sleep is never too short: these can't be kept.
    for limit in [
        json!({"first_event_s": 0.02, "latency_s": 600.0}),
        json!({"first_event_s": 600.0, "per_event_s": 0.005}),
        json!({"latency_s": 0.06}),
    ] {
        assert_eq!(goodput(limit.clone()), 0.0, "{limit}");
    }
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
    expect(&result, &[("/events/responses", COUNT)]);
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

/// Streams without end, one event each 10 ms, for as long as the client listens.
fn endless() -> Server {
    Server::start(|mut client: Client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        while client.stream.write_all(chunk("data: x\n\n").as_bytes()).is_ok() {
            sleep(GAP);
        }
    })
}

/// Longer than any test: whoever waited for it would be noticed.
const TIMEOUT_S: f64 = 600.0;

/// Runs an order as `loadgen run` does.
fn run_alone(order: &Value) -> Value {
    let order = parse(&order.to_string()).expect("a good order");
    let mut plan = Plan::new(order).expect("a plan");
    plan.leaves_streams = true;
    run_plan(&mut engine(1), plan)
}

/// Costs of a comparison are those of whole responses.
#[test]
fn streams_are_waited_for_where_they_are_compared() {
    let server =
        streaming("Transfer-Encoding: chunked\r\n", |number| chunk(&format!("data: {number}\n\n")));
    let asked = order(&server.url(), 1, json!({"duration_s": 0.04, "count": null}));
    let counts = [("/requests/unanswered", 1), ("/requests/drained", 1), ("/whole/unfinished", 0)];
    expect(&run(&asked), &counts);
    expect(&run_alone(&asked), &[("/requests/drained", 0), ("/whole/unfinished", 1)]);
}

#[test]
fn streams_that_never_end_are_timed_and_end_with_the_duration() {
    let server = endless();
    let load = json!({"load": {"timeout_s": TIMEOUT_S, "connections": 2},
                      "duration_s": 0.2, "count": null});
    let mut asked = order(&server.url(), 1, load);
    asked["requests"][0]["events"] = json!("sse");
    let result = run_alone(&asked);
    let gaps = result["events"]["gap_us"]["count"].as_u64().expect("a count");
    assert!((3..=40).contains(&gaps), "{}", result["events"]);
    expect(
        &result,
        &[
            ("/events/responses", 0),
            ("/requests/unanswered", 2),
            ("/requests/unfinished", 2),
            ("/whole/unfinished", 2),
            ("/whole/unanswered", 0),
            ("/whole/failures/timeout", 0),
            ("/latency_us/count", 0),
        ],
    );
    assert_eq!(result["ended_by"], "duration");
}

/// Of an open loop as well, whose load goes on after the window until all of it is answered.
#[test]
fn streams_that_never_end_keep_no_open_loop() {
    let server = endless();
    let arrivals = json!({"stages": [{"rate_per_s": 50.0}]});
    let load = json!({"loop": "open", "arrivals": arrivals, "connections": 4,
                      "timeout_s": TIMEOUT_S});
    let more = json!({"load": load, "ramp_up_s": 0.1, "duration_s": 0.2, "count": null});
    let result = run_alone(&order(&server.url(), 1, more));
    assert!(number(&result, "/whole/unfinished") >= 4, "{result:#}");
    expect(&result, &[("/whole/unanswered", 0), ("/whole/failures/timeout", 0)]);
}

/// What has ended once is known to end: such a response is waited for, and fails if it doesn't.
#[test]
fn responses_that_end_are_waited_for() {
    let server = Server::start(|mut client: Client| {
        let mut first = client.number == 0;
        while client.request().is_some() {
            client.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
            client.write(chunk("a").as_bytes());
            if !std::mem::take(&mut first) {
                sleep(10 * FIRST);
            }
            client.write(b"0\r\n\r\n");
        }
    });
    let more = json!({"duration_s": 0.1, "count": null});
    let result = run_alone(&order(&server.url(), 1, more));
    expect(&result, &[("/requests/unanswered", 1), ("/requests/drained", 1)]);
    expect(&result, &[("/requests/completed", 1), ("/whole/unfinished", 0)]);
}

#[test]
fn streams_over_http2_end_with_the_duration() {
    let server = http2::server(&[], |mut frames, _| {
        let ids = [frames.request(), frames.request()];
        for id in ids.iter().flatten() {
            frames.head(*id, 200, None, false);
        }
        while ids.iter().flatten().all(|id| frames.wrote_data(*id, b"data: x\n\n")) {
            sleep(GAP);
        }
    });
    let mut more = layers::http2(1, 2);
    more["load"]["timeout_s"] = json!(TIMEOUT_S);
    (more["duration_s"], more["count"]) = (json!(0.2), json!(null));
    let result = run_alone(&order(&server.url(), 1, more));
    expect(
        &result,
        &[("/whole/unfinished", 2), ("/whole/unanswered", 0), ("/whole/failures/timeout", 0)],
    );
}
