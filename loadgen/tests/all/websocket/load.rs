//! Loads over WebSocket.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loadgen::engine::Plan;
use loadgen::order::parse::parse;
use serde_json::{Value, json};

use crate::layers::websocket::{BINARY, CLOSE, PING, PONG, Socket, TEXT, messages};
use crate::support::{Server, engine, expect, number, run, run_on};

/// A server that does something with each WebSocket.
fn server(script: impl Fn(Socket<std::net::TcpStream>, usize) + Send + Sync + 'static) -> Server {
    Server::start(move |client| {
        let number = client.number;
        if let Some(socket) = Socket::begin(client) {
            script(socket, number);
        }
    })
}

#[test]
fn messages_are_text_or_binary_of_any_size() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let seen = heard.clone();
    let server = server(move |mut socket, _| {
        while let Some((first, payload)) = socket.frame().filter(|(first, _)| *first != CLOSE) {
            seen.lock().expect("a list").push((first, payload.len()));
            socket.send(BINARY, &payload);
        }
    });
    for (bytes, binary) in [(0, false), (13, true), (126, false), (70_000, true), (900_000, false)]
    {
        let body = "x".repeat(bytes);
        let request = json!([{"url": format!("ws://{}/", server.address), "body": body,
                              "binary": binary, "expect": {"body_bytes": bytes}}]);
        let result = run(&messages(server.address, 5, json!({"requests": request})));
        let counts = [
            ("/requests/completed", 5),
            ("/bytes/body", 5 * bytes as u64),
            ("/connections/opened", 1),
            ("/websocket_handshake_us/count", 1),
        ];
        expect(&result, &counts);
        let first = if binary { BINARY } else { TEXT };
        assert_eq!(*heard.lock().expect("a list"), vec![(first, bytes); 5]);
        heard.lock().expect("a list").clear();
    }
}

#[test]
fn pings_are_answered_whenever_they_come() {
    let pongs = Arc::new(AtomicUsize::new(0));
    let seen = pongs.clone();
    let server = server(move |mut socket, _| {
        socket.send(PING, b"first");
        let mut parts: Vec<(u8, &[u8])> = vec![
            (PING, b"before"),
            (0x01, b"he"),
            (PING, b"within"),
            (0x80, b"llo"),
            (PING, b"after"),
        ];
        while let Some((first, payload)) = socket.frame() {
            match first {
                PONG => drop(seen.fetch_add(1, Ordering::SeqCst)),
                CLOSE => return,
                _ => {
                    assert_eq!(payload, b"hello");
                    parts.iter().for_each(|(first, payload)| socket.send(*first, payload));
                    parts.retain(|(_, payload)| *payload != b"before");
                }
            }
        }
    });
    // One after the load, while nobody asks, and then a second load.
    let mut engine = engine(1);
    let order = messages(server.address, 3, json!({}));
    expect(&run_on(&mut engine, &order), &[("/requests/completed", 3), ("/bytes/body", 15)]);
    let counts = [("/requests/completed", 3), ("/connections/opened", 0)];
    expect(&run_on(&mut engine, &order), &counts);
    drop(engine);
    let begun = Instant::now();
    while pongs.load(Ordering::SeqCst) < 1 + 1 + 6 * 2 - 1 {
        assert!(begun.elapsed() < Duration::from_secs(5), "{pongs:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A server hears that nothing more comes.
#[test]
fn every_connection_ends_with_a_farewell() {
    let (kept, said) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (messages_of, farewells) = (kept.clone(), said.clone());
    let server = server(move |mut socket, _| {
        while let Some((first, payload)) = socket.frame() {
            if first == CLOSE {
                assert_eq!(payload, 1000u16.to_be_bytes());
                farewells.fetch_add(1, Ordering::SeqCst);
                return;
            }
            messages_of.fetch_add(1, Ordering::SeqCst);
            socket.send(TEXT, &payload);
        }
    });
    let more = json!({"load": {"keepalive": 4}});
    let result = run(&messages(server.address, 10, more));
    let counts = [
        ("/requests/completed", 10),
        ("/connections/opened", 3),
        ("/connections/reused_requests", 7),
        ("/keepalive/server_closed", 0),
    ];
    expect(&result, &counts);
    let begun = Instant::now();
    while said.load(Ordering::SeqCst) < 3 {
        assert!(begun.elapsed() < Duration::from_secs(5), "{said:?} of {kept:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Connections are shared only by requests with one path and alike header fields.
#[test]
fn paths_have_their_own_connections() {
    let server = Server::start(|mut client| {
        let request = client.request().expect("a handshake");
        client.write(crate::layers::websocket::accepting(&request).as_bytes());
        let path = request.split(' ').nth(1).expect("a path").to_owned();
        assert_eq!(request.contains("Authorization: me"), path == "/b", "{request}");
        let mut socket = Socket::begun(client);
        while socket.message().is_some() {
            socket.send(TEXT, path.as_bytes());
        }
    });
    let request = |path: &str, headers: Value, bytes: u64| {
        json!({"url": format!("ws://{}{path}", server.address), "body": "x", "headers": headers,
               "expect": {"body_bytes": bytes}})
    };
    let requests = json!([
        request("/a", json!({}), 2),
        request("/b", json!({"Authorization": "me"}), 2),
        request("/long", json!({}), 5)
    ]);
    let more = json!({"requests": requests, "sequence": [0, 1, 2]});
    let result = run(&messages(server.address, 9, more));
    expect(&result, &[("/requests/completed", 9), ("/connections/opened", 3)]);
}

/// What is due in time tells every percentile: at an even rate a server that freezes for 200 ms
/// in each half second lets messages wait for up to that long.
#[test]
fn an_open_loop_tells_each_percentile_of_known_delays() {
    const FROZEN: Duration = Duration::from_millis(200);
    const PERIOD: Duration = Duration::from_millis(500);
    const BASE: Duration = Duration::from_millis(20);
    let server = server(|mut socket, _| {
        while let Some(message) = socket.message() {
            // The clock of a freeze is that of the machine, whatever the connection.
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let into =
                Duration::new(now.tv_sec as u64, now.tv_nsec as u32).as_nanos() % PERIOD.as_nanos();
            let left = FROZEN.as_nanos().saturating_sub(into) as u64;
            std::thread::sleep(BASE.max(Duration::from_nanos(left)));
            socket.send(TEXT, &message);
        }
    });
    let more = json!({"duration_s": 1.0, "count": null, "load": {"loop": "open", "connections": 150,
                      "arrivals": {"stages": [{"rate_per_s": 500.0}]}}});
    let (base_ms, frozen_ms, period_ms) = (20.0, 200.0, 500.0);
    // A message that comes at a time after a freeze began waits for its end, or for the base.
    let truth_ms = |quantile: f64| -> f64 {
        let waits = (frozen_ms - base_ms) / period_ms;
        if quantile <= 1.0 - waits {
            base_ms
        } else {
            base_ms + (quantile - 1.0 + waits) * period_ms
        }
    };
    let mut engine = engine(1);
    // A busy machine holds some up, but not each time.
    let is_right = || {
        let result = run_on(&mut engine, &messages(server.address, 1, more.clone()));
        expect(&result, &[("/latency_us/count", 500)]);
        [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99_9", 0.999)].into_iter().all(
            |(name, quantile)| {
                let ms = result["latency_us"][name].as_f64().expect("a time") / 1e3;
                let truth = truth_ms(quantile);
                // What is due is two milliseconds apart, and so are the waits for the end of a freeze.
                let bound = 0.02 * truth + 1.0 + 2.0;
                let right = (ms - truth).abs() <= bound;
                if !right {
                    eprintln!("{name}: {ms} ms instead of {truth}");
                }
                right
            },
        )
    };
    assert!(std::iter::repeat_with(is_right).take(40).any(|right| right));
}

/// Whole connections are due, each with a handshake and some messages.
#[test]
fn connections_are_due_with_their_messages() {
    let server = server(|mut socket, _| socket.echo_all());
    let load = json!({"loop": "open", "connections": 4, "keepalive": 3,
                      "arrivals": {"unit": "connection", "stages": [{"rate_per_s": 200.0}]}});
    let result = run(&messages(server.address, 10, json!({"load": load})));
    let counts = [
        ("/requests/completed", 30),
        ("/connections/opened", 10),
        ("/websocket_handshake_us/count", 10),
    ];
    expect(&result, &counts);
}

/// They ask once, are held open, and pings on them are answered.
#[test]
fn idle_connections_are_held() {
    let server = server(|mut socket, number| {
        if number % 2 == 0 {
            socket.send(PING, b"");
        }
        socket.echo_all();
    });
    let more = json!({"load": {"idle_connections": 50, "connections": 2}, "duration_s": 0.5, "count": null});
    let result = run(&messages(server.address, 1, more));
    let counts = [
        ("/idle_connections/held", 50),
        ("/idle_connections/failed", 0),
        ("/keepalive/server_closed", 0),
    ];
    expect(&result, &counts);
    assert!(number(&result, "/requests/completed") > 0);
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let refused = |more: Value, why: &str| {
        let mut order = messages(address, 1, more.clone());
        if let Some(protocol) = more.pointer("/load/protocol") {
            order["load"]["protocol"] = protocol.clone();
        }
        let refusal = parse(&order.to_string()).expect_err(why).message;
        assert!(refusal.contains(why), "{refusal}");
    };
    let request = |more: Value| {
        let mut request = json!({"url": "ws://127.0.0.1:1/", "body": "x"});
        more.as_object()
            .into_iter()
            .flatten()
            .for_each(|(key, value)| request[key] = value.clone());
        json!({"requests": [request]})
    };
    refused(json!({"load": {"protocol": "http1"}}), "need \"websocket\"");
    refused(request(json!({"url": "http://127.0.0.1:1/"})), "load one or the other");
    refused(request(json!({"body": null})), "needs a message");
    refused(request(json!({"body": {"base64": "/w=="}})), "binary");
    refused(request(json!({"method": "POST"})), "no method");
    refused(request(json!({"flow": "a"})), "flows");
    refused(json!({"load": {"cookies": true}}), "cookies");
    refused(json!({"load": {"streams": 2}}), "streams");
    refused(
        json!({"load": {"slow_readers": {"connections": 1, "bytes_per_s": 1}}}),
        "slow_readers",
    );
    let plain = json!({"requests": [{"url": "http://127.0.0.1:1/", "binary": true}], "count": 1,
                       "load": {"loop": "closed", "connections": 1}});
    let refusal = parse(&plain.to_string()).expect_err("binary").message;
    assert!(refusal.contains("messages of a WebSocket"), "{refusal}");
    assert!(
        Plan::new(parse(&messages(address, 1, json!({})).to_string()).expect("an order")).is_ok()
    );
}
