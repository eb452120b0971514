//! Short answers in several segments: the engine leaves such answers in the kernel until the next
//! request is sent. Nothing of that may be seen from outside.

use std::io::Read;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Client, HELLO, Server, expect, number, order, run};
use serde_json::json;

const COUNT: u64 = 40;
const HEAD_BYTES: usize = HELLO.len() - 13;

/// Answers in two segments, far enough apart for the client to see the first one alone.
fn answer_in_pieces(client: &mut Client, times: usize) {
    for _ in 0..times {
        if client.request().is_none() {
            return;
        }
        client.write(&HELLO[..HEAD_BYTES]);
        std::thread::sleep(Duration::from_millis(2));
        client.write(&HELLO[HEAD_BYTES..]);
    }
}

#[test]
fn pieces_and_whole_answers_take_turns() {
    let server = Server::start(|mut client| {
        loop {
            answer_in_pieces(&mut client, 3);
            for _ in 0..3 {
                if client.request().is_none() {
                    return;
                }
                client.write(HELLO);
            }
        }
    });
    let result = run(&order(&server.url(), COUNT, json!({})));
    let body_bytes = 13 * COUNT;
    expect(&result, &[("/requests/completed", COUNT), ("/bytes/body", body_bytes)]);
    expect(&result, &[("/connections/opened", 1)]);
    let mean_us = |times: &str| result[times]["mean"].as_f64().expect("a mean");
    assert!(mean_us("first_byte_time_us") < mean_us("service_time_us"), "{result}");
}

#[test]
fn bytes_after_an_answer_are_seen() {
    let server = Server::start(|mut client| {
        answer_in_pieces(&mut client, 5);
        while client.request().is_some() {
            client.write(&[HELLO, b"!"].concat());
        }
    });
    let result = run(&order(&server.url(), COUNT, json!({})));
    let malformed = number(&result, "/failures/malformed");
    assert!(malformed > 0, "{result}");
    expect(&result, &[("/requests/completed", COUNT - malformed)]);
}

#[test]
fn connections_end_without_a_reset() {
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ends);
    let server = Server::start(move |mut client| {
        answer_in_pieces(&mut client, 3);
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        let end = client.stream.read(&mut [0]).map_err(|error| error.kind());
        seen.lock().expect("ends").push(end);
    });
    let result = run(&order(&server.url(), COUNT, json!({})));
    expect(&result, &[("/requests/completed", COUNT)]);
    drop(server);
    let ends = ends.lock().expect("ends");
    assert!(!ends.is_empty() && ends.iter().all(|end| *end == Ok(0)), "{ends:?}");
}
