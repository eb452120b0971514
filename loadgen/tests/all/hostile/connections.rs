//! Connections: how servers end them, and how long they are kept.

use std::net::{Shutdown, TcpListener};
use std::sync::atomic::Ordering;
use std::time::Duration;

use loadgen::engine::Plan;
use loadgen::order::parse::parse;
use loadgen::target::Address;
use serde_json::json;

use super::{COUNT, all_fail};
use crate::support::{HELLO, Server, engine, expect, number, order, run, run_on, run_plan};

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
    // Whether the end is seen before the next request leaves is a matter of luck.
    expect(&result, &[("/requests/completed", COUNT), ("/connections/opened", COUNT)]);
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
fn half_closed_after_the_answer() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(HELLO);
        let _ = client.stream.shutdown(Shutdown::Write);
        client.request();
    });
    let result = run(&order(&server.url(), COUNT, json!({})));
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", COUNT)]);
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

/// What a server does to its idle connections while another one is loaded is not that one's.
#[test]
fn idle_connections_stay_with_their_server() {
    let closing = Server::start(|mut client| {
        client.request();
        client.write(HELLO);
        std::thread::sleep(Duration::from_millis(200));
    });
    let other = Server::answering(HELLO);
    let load = |idle: u32| json!({"load": {"idle_connections": idle}});
    let mut engine = engine(1);
    let first = order(&closing.url(), 1, load(5));
    expect(&run_on(&mut engine, &first), &[("/idle_connections/held", 5)]);
    let more = json!({"duration_s": 0.5, "count": null, "load": {"idle_connections": 2}});
    let result = run_on(&mut engine, &order(&other.url(), 1, more));
    expect(&result, &[("/idle_connections/held", 2), ("/idle_connections/server_closed", 0)]);
    expect(&result, &[("/connections/opened", 1), ("/keepalive/server_closed", 0)]);
    assert_eq!(other.connections.load(Ordering::Relaxed), 3);
    assert_eq!(closing.connections.load(Ordering::Relaxed), 6);
    expect(&run_on(&mut engine, &first), &[("/idle_connections/held", 5)]);
    assert_eq!(closing.connections.load(Ordering::Relaxed), 12);
}

/// A name may have addresses at which nobody listens.
#[test]
fn the_next_address_is_tried() {
    let dead = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
    let server = Server::answering(HELLO);
    for keepalive in ["always", "never"] {
        let more = json!({"load": {"connections": 2, "keepalive": keepalive}});
        let text = order(&server.url(), COUNT, more).to_string();
        let mut plan = Plan::new(parse(&text).expect("a good order")).expect("a plan");
        plan.origins[0].addresses.insert(0, Address::Tcp(dead));
        let result = run_plan(&mut engine(1), plan);
        expect(&result, &[("/requests/completed", COUNT), ("/failures/connect", 0)]);
    }
    // Only when none answers is it a failure, told with all of them.
    let mut plan = Plan::new(
        parse(&order(&server.url(), 1, json!({"load": {"timeout_s": 0.1}})).to_string())
            .expect("a good order"),
    )
    .expect("a plan");
    plan.origins[0].addresses = vec![Address::Tcp(dead), Address::Tcp(dead)];
    let result = run_plan(&mut engine(1), plan);
    assert!(number(&result, "/failures/connect") > 0, "{result:#}");
}

/// Also where the system knows `localhost` as the other one.
#[test]
fn localhost_is_both_loopback_addresses() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(address).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = Server::listen(listener, |mut client| client.answer_all(HELLO));
        let result = run(&order(&format!("http://localhost:{port}/"), COUNT, json!({})));
        expect(&result, &[("/requests/completed", COUNT), ("/failures/connect", 0)]);
        drop(server);
    }
}

/// Each address is connected to from one of its kind.
#[test]
fn sources_of_both_kinds_serve_addresses_of_both_kinds() {
    let dead = TcpListener::bind("[::1]:0").expect("a port").local_addr().expect("one");
    let server = Server::answering(HELLO);
    let sources = json!({"source_addresses": ["127.0.0.2", "::1"], "keepalive": "never"});
    let text = order(&server.url(), COUNT, json!({"load": sources})).to_string();
    let mut plan = Plan::new(parse(&text).expect("a good order")).expect("a plan");
    plan.origins[0].addresses.insert(0, Address::Tcp(dead));
    let result = run_plan(&mut engine(1), plan);
    expect(&result, &[("/requests/completed", COUNT), ("/failures/connect", 0)]);
}

/// While its only connection rests after a failure, a request that is due waits for us.
#[test]
fn rests_are_lag() {
    let server = Server::start(|mut client| {
        client.request();
    });
    let arrivals = json!({"stages": [{"rate_per_s": 2000.0}]});
    let load = json!({"loop": "open", "arrivals": arrivals, "connections": 1});
    let result = run(&order(&server.url(), 5, json!({"load": load})));
    expect(&result, &[("/failures/reset", 5)]);
    // The first two rests take one and two milliseconds.
    assert!(result["send_delay_us"]["max"].as_f64() >= Some(1000.0), "{result:#}");
}
