//! Short answers in several segments: the engine leaves such answers in the kernel until the next
//! request is sent. Nothing of that may be seen from outside.

use std::collections::BTreeMap;
use std::io::Read;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Client, HELLO, Server, expect, number, order, run};
use serde_json::{Value, json};

const COUNT: u64 = 40;
const HEAD_BYTES: usize = HELLO.len() - 13;

/// Several requests are due whenever the client looks.
fn with_a_budget() -> Value {
    let arrivals = json!({"stages": [{"rate_per_s": 400.0}]});
    json!({"load": {"loop": "open", "connections": 16, "arrivals": arrivals,
                    "send_delay_budget_s": 0.01}})
}

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
    for more in [json!({}), with_a_budget()] {
        let count = 4 * COUNT;
        let result = run(&order(&server.url(), count, more));
        let malformed = number(&result, "/failures/malformed");
        assert!(malformed > 0, "{result}");
        expect(&result, &[("/requests/completed", count - malformed)]);
    }
}

/// Who looks seldom finds both segments at once.
#[test]
fn the_next_request_acknowledges_an_answer_in_pieces() {
    let bare_acks = || {
        let by_connection = Arc::new(Mutex::new(BTreeMap::new()));
        let seen = Arc::clone(&by_connection);
        let server = Server::start(move |mut client| {
            while client.request().is_some() {
                let bare = bare_segments(&client.stream);
                seen.lock().expect("counts").insert(client.number, bare);
                client.write(&HELLO[..HEAD_BYTES]);
                client.write(&HELLO[HEAD_BYTES..]);
            }
        });
        let result = run(&order(&server.url(), 200, with_a_budget()));
        expect(&result, &[("/requests/completed", 200)]);
        by_connection.lock().expect("counts").values().sum::<u64>()
    };
    // A busy machine may hold everything up, but not each time.
    assert!(std::iter::repeat_with(bare_acks).take(20).any(|bare| bare < 100));
}

/// Segments without data that a socket was sent.
fn bare_segments(socket: &TcpStream) -> u64 {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut bytes = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel fills in at most `bytes` of it; all-zero is valid too.
    let (outcome, info) = unsafe {
        let (fd, into) = (socket.as_raw_fd(), info.as_mut_ptr().cast());
        let outcome = libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, into, &raw mut bytes);
        (outcome, info.assume_init())
    };
    assert_eq!(outcome, 0);
    u64::from(info.tcpi_segs_in - info.tcpi_data_segs_in)
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
