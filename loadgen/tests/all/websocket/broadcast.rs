//! One connection sends, and all others receive: on servers that do it, and on such that break it.

use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use loadgen::order::parse::parse;
use serde_json::{Value, json};

use crate::layers::websocket::{CLOSE, Socket, TEXT, accepting, frame, messages};
use crate::support::{Server, engine, expect, number, run, run_on};

const RECEIVERS: u64 = 20;
const ROUNDS: u64 = 5;
const COUNT: u64 = RECEIVERS * ROUNDS;

type Member = (usize, TcpStream);

/// Each message is sent on to the members, as `relay` does it; it says whether its sender stays.
fn hub(relay: impl Fn(&[Member], usize, &[u8]) -> bool + Send + Sync + 'static) -> Server {
    let members: Mutex<Vec<Member>> = Mutex::default();
    Server::start(move |client| {
        let number = client.number;
        let Some(mut socket) = Socket::begin(client) else { return };
        let stream = socket.stream().try_clone().expect("a stream");
        members.lock().expect("members").push((number, stream));
        while let Some(message) = socket.message() {
            if !relay(&members.lock().expect("members"), number, &message) {
                break;
            }
        }
        members.lock().expect("members").retain(|(member, _)| *member != number);
    })
}

fn send(mut stream: &TcpStream, bytes: &[u8]) {
    // A member may be gone.
    let _ = stream.write_all(bytes);
}

fn to_all(members: &[Member], message: &[u8]) {
    members.iter().for_each(|(_, stream)| send(stream, &frame(TEXT, message)));
}

fn broadcasts(server: &Server, more: Value) -> Value {
    let mut order = messages(server.address, COUNT, more);
    order["load"]["broadcast"] = json!(true);
    if order["load"]["connections"] == 1 {
        order["load"]["connections"] = json!(RECEIVERS);
    }
    order
}

fn for_a_while(seconds: f64, timeout_s: f64) -> Value {
    json!({"count": null, "duration_s": seconds, "load": {"timeout_s": timeout_s}})
}

#[test]
fn all_receive_each_message_once() {
    for sends_back in [true, false] {
        let server = hub(move |members, sender, message| {
            let others = members.iter().filter(|(member, _)| sends_back || *member != sender);
            others.for_each(|(_, stream)| send(stream, &frame(TEXT, message)));
            true
        });
        // More threads than one change nothing, and the next slot has the connections.
        let mut engine = engine(2);
        for opened in [RECEIVERS + 1, 0] {
            let result = run_on(&mut engine, &broadcasts(&server, json!({})));
            let counts = [
                ("/requests/sent", COUNT),
                ("/requests/completed", COUNT),
                ("/latency_us/count", COUNT),
                ("/bytes/body", COUNT * 5),
                ("/connections/opened", opened),
                ("/websocket_handshake_us/count", opened),
                ("/keepalive/server_closed", 0),
                ("/client/threads", 1),
            ];
            expect(&result, &counts);
            assert_eq!(result["ended_by"], "count");
        }
    }
}

#[test]
fn long_messages_are_sent_and_received_whole() {
    let server = hub(|members, _, message| {
        to_all(members, message);
        true
    });
    let body = "x".repeat(3_000_000);
    let request = json!([{"url": format!("ws://{}/", server.address), "body": body,
                          "expect": {"body_bytes": body.len()}}]);
    let more = json!({"requests": request, "count": 6, "load": {"connections": 3}});
    let result = run(&broadcasts(&server, more));
    expect(&result, &[("/requests/completed", 6), ("/connections/opened", 4)]);
}

/// What is due is due for all at once, and its time ends when each has it.
#[test]
fn an_open_loop_times_each_from_when_the_message_was_due() {
    let server = hub(|members, _, message| {
        sleep(Duration::from_millis(20));
        let (first, others) = members.split_at(10);
        to_all(first, message);
        sleep(Duration::from_millis(20));
        to_all(others, message);
        true
    });
    for (each, rate) in [(true, 10.0), (false, 10.0 * RECEIVERS as f64)] {
        let arrivals = json!({"each_connection": each, "stages": [{"rate_per_s": rate}]});
        let mut more = for_a_while(1.0, 5.0);
        more["load"]["loop"] = json!("open");
        more["load"]["arrivals"] = arrivals;
        let result = run(&broadcasts(&server, more));
        let received = number(&result, "/latency_us/count");
        assert_eq!(received, 10 * RECEIVERS, "{result:#}");
        let ms = |name: &str| result["latency_us"][name].as_f64().expect("a time") / 1e3;
        assert!((20.0..39.0).contains(&ms("min")), "{result:#}");
        assert!((40.0..400.0).contains(&ms("p90")), "{result:#}");
    }
}

#[test]
fn who_is_left_out_fails_and_the_others_go_on() {
    let server = hub(|members, _, message| {
        let others = members.iter().filter(|(member, _)| *member != 2);
        others.for_each(|(_, stream)| send(stream, &frame(TEXT, message)));
        true
    });
    let result = run(&broadcasts(&server, json!({"load": {"timeout_s": 0.3}})));
    // It comes back as another connection.
    let counts = [
        ("/requests/sent", COUNT),
        ("/failures/timeout", 1),
        ("/requests/completed", COUNT - 1),
        ("/connections/opened", RECEIVERS + 2),
    ];
    expect(&result, &counts);
}

#[test]
fn who_is_closed_fails_and_comes_back() {
    let server = hub(|members, sender, message| {
        let (left, others) = members.iter().partition::<Vec<_>, _>(|(member, _)| *member == 2);
        others.iter().for_each(|(_, stream)| send(stream, &frame(TEXT, message)));
        let is_receiver = |member: &&&Member| member.0 != sender;
        left.iter().filter(is_receiver).for_each(|(_, stream)| {
            send(stream, &frame(CLOSE, b"\x03\xe9"));
        });
        true
    });
    let result = run(&broadcasts(&server, json!({})));
    let counts = [
        ("/failures/reset", 1),
        ("/requests/completed", COUNT - 1),
        ("/by_close_code/1001", 1),
        ("/keepalive/server_closed", 1),
    ];
    expect(&result, &counts);
}

#[test]
fn a_sender_that_is_closed_is_opened_again() {
    let server = hub(|members, _, message| {
        to_all(members, message);
        false
    });
    // A pause, in which the end is seen: what is sent into a connection that ends is lost.
    let result = run(&broadcasts(&server, json!({"load": {"think": {"mean_s": 0.05}}})));
    expect(&result, &[("/requests/completed", COUNT)]);
    let opened = number(&result, "/connections/opened");
    assert!((RECEIVERS + ROUNDS - 1..=RECEIVERS + ROUNDS + 1).contains(&opened), "{result:#}");
}

#[test]
fn messages_that_come_twice_are_seen() {
    let server = hub(|members, _, message| {
        to_all(members, message);
        to_all(members, message);
        true
    });
    let result = run(&broadcasts(&server, for_a_while(0.5, 0.2)));
    assert!(result["failure_samples"].to_string().contains("nobody had asked"), "{result:#}");
}

/// What the sender hears is nobody's, however much it is.
#[test]
fn floods_to_the_sender_are_passed_over() {
    let flood = Arc::new(frame(TEXT, &[b'x'; 1000]).repeat(1000));
    let server = hub(move |members, sender, message| {
        let its = members.iter().find(|(member, _)| *member == sender);
        its.into_iter().for_each(|(_, stream)| send(stream, &flood));
        let others = members.iter().filter(|(member, _)| *member != sender);
        others.for_each(|(_, stream)| send(stream, &frame(TEXT, message)));
        true
    });
    let result = run(&broadcasts(&server, json!({})));
    let counts = [
        ("/requests/completed", COUNT),
        ("/bytes/body", COUNT * 5),
        ("/connections/opened", RECEIVERS + 1),
    ];
    expect(&result, &counts);
}

/// Nothing hangs where a server reads no message to its end, or answers no ping.
#[test]
fn servers_that_take_nothing_in() {
    let deaf = Server::start(|mut client| {
        let Some(request) = client.request() else { return };
        client.write(accepting(&request).as_bytes());
        // The ping's six bytes, and no more.
        let mut ping = [0; 6];
        if std::io::Read::read_exact(&mut client.stream, &mut ping).is_ok() {
            client.write(&frame(crate::layers::websocket::PONG, b""));
            sleep(Duration::from_secs(3));
        }
    });
    let mut more = for_a_while(1.0, 0.2);
    more["requests"] =
        json!([{"url": format!("ws://{}/", deaf.address), "body": "x".repeat(20_000_000)}]);
    let result = run(&broadcasts(&deaf, more));
    let timeouts = number(&result, "/failures/timeout");
    assert!(timeouts >= RECEIVERS, "{result:#}");
    expect(&result, &[("/requests/completed", 0)]);
    let silent = Server::start(|mut client| {
        let Some(request) = client.request() else { return };
        client.write(accepting(&request).as_bytes());
        sleep(Duration::from_secs(2));
    });
    let result = run(&broadcasts(&silent, for_a_while(0.5, 0.2)));
    assert!(result["failure_samples"].to_string().contains("not ready within"), "{result:#}");
    expect(&result, &[("/requests/sent", 0)]);
}

#[test]
fn orders_that_make_no_sense_are_refused() {
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let refused = |more: Value, why: &str| {
        let mut order = messages(address, COUNT, more);
        order["load"]["broadcast"] = json!(true);
        let refusal = parse(&order.to_string()).expect_err(why).message;
        assert!(refusal.contains(why), "{refusal}");
    };
    let message = json!({"url": "ws://127.0.0.1:1/", "body": "x"});
    refused(json!({"requests": [message, message]}), "one message");
    refused(json!({"load": {"idle_connections": 1}}), "idle connections");
    refused(json!({"load": {"keepalive": 4}}), "keepalive");
    refused(json!({"load": {"connections": 7}}), "all 7 connections");
    let open = |more: Value| {
        let mut load = json!({"loop": "open", "arrivals": {"stages": [{"rate_per_s": 5.0}]}});
        crate::support::merge(&mut load, more);
        json!({"count": null, "duration_s": 1.0, "load": load})
    };
    refused(open(json!({"arrivals": {"burst": 2}})), "burst");
    refused(open(json!({"send_delay_budget_s": 0.001})), "send_delay_budget_s");
    refused(open(json!({"arrivals": {"stages": null, "times_s": [0.1]}})), "has stages");
    let plain = json!({"requests": [{"url": "http://127.0.0.1:1/"}], "count": 1,
                       "load": {"loop": "closed", "connections": 1, "broadcast": true}});
    let refusal = parse(&plain.to_string()).expect_err("HTTP").message;
    assert!(refusal.contains("messages of a WebSocket"), "{refusal}");
}
