//! Connections: how servers end them, and how long they are kept.

use std::net::Shutdown;

use serde_json::json;

use crate::support::{HELLO, Server, expect, number, order, run};
use crate::{COUNT, all_fail};

const LAST: &[u8] =
    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 13\r\n\r\nHello, World!";

#[test]
fn resets_and_ends_without_an_answer() {
    let server = Server::start(|mut client| {
        client.request();
        client.reset();
    });
    all_fail(&server, "reset");
    let server = Server::start(|mut client| {
        client.request();
    });
    all_fail(&server, "reset");
}

#[test]
fn closing_at_once_is_not_a_busy_loop() {
    let server = Server::start(drop);
    let more = json!({"duration_s": 0.3, "count": null, "load": {"connections": 4}});
    let result = run(&order(&server.url(), 1, more));
    // Four connections that rest 1, 2, 4, 8 … ms between tries: some 9 tries each.
    assert!(number(&result, "/connections/opened") < 80, "{result:#}");
    expect(&result, &[("/requests/completed", 0)]);
}

#[test]
fn closing_after_each_answer() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(LAST);
    });
    let result = run(&order(&server.url(), COUNT, json!({})));
    expect(
        &result,
        &[
            ("/requests/completed", COUNT),
            ("/connections/opened", COUNT),
            ("/keepalive/server_closed", COUNT),
        ],
    );
}

#[test]
fn closing_without_saying_so() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(HELLO);
    });
    let result = run(&order(&server.url(), COUNT, json!({})));
    expect(&result, &[("/requests/sent", COUNT)]);
    let lost = number(&result, "/failures/reset");
    // Whether the end is seen before the next request leaves is a matter of luck.
    expect(&result, &[("/requests/completed", COUNT - lost)]);
    assert!(lost < COUNT, "{result:#}");
}

#[test]
fn keepalive_limits_of_the_server() {
    for (limit, count) in [(1000, 2500), (7, 100)] {
        let server = Server::start(move |mut client| {
            for nth in 1..=limit {
                if client.request().is_none() {
                    return;
                }
                match nth {
                    last if last == limit => client.write(LAST),
                    _ => client.write(HELLO),
                }
            }
        });
        let result = run(&order(&server.url(), count, json!({})));
        let opened = count.div_ceil(limit);
        expect(
            &result,
            &[
                ("/requests/completed", count),
                ("/connections/opened", opened),
                ("/connections/reused_requests", count - opened),
                ("/keepalive/server_closed", count / limit),
            ],
        );
    }
}

#[test]
fn keepalive_limits_of_ours() {
    let server = Server::answering(HELLO);
    for (keepalive, opened) in [(json!("never"), 20), (json!(1), 20), (json!(6), 4)] {
        let more = json!({"load": {"keepalive": keepalive}});
        let result = run(&order(&server.url(), COUNT, more));
        expect(
            &result,
            &[
                ("/requests/completed", COUNT),
                ("/connections/opened", opened),
                ("/keepalive/server_closed", 0),
            ],
        );
    }
}

#[test]
fn half_closed_after_the_answer() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(HELLO);
        let _ = client.stream.shutdown(Shutdown::Write);
        client.request();
    });
    let result = run(&order(&server.url(), COUNT, json!({})));
    expect(&result, &[("/requests/sent", COUNT)]);
    assert!(number(&result, "/requests/completed") >= COUNT / 2, "{result:#}");
}

#[test]
fn half_closed_before_or_within_an_answer() {
    for (part, failure) in [("", "reset"), ("HTTP/1.1 200 OK\r\nContent-Le", "truncated")] {
        let server = Server::start(move |mut client| {
            client.request();
            client.write(part.as_bytes());
            let _ = client.stream.shutdown(Shutdown::Write);
            client.request();
        });
        all_fail(&server, failure);
    }
}

#[test]
fn an_answer_before_the_whole_request() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        let _ = client.stream.shutdown(Shutdown::Write);
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut client.stream, &mut rest);
    });
    let body = "x".repeat(8_000_000);
    let request = json!({"url": server.url(), "method": "POST", "body": body,
                         "expect": {"status": [413]}});
    let result = run(&order(&server.url(), 3, json!({"requests": [request]})));
    expect(&result, &[("/requests/sent", 3), ("/by_status/413", 3)]);
}
