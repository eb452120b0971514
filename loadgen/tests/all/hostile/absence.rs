//! Servers that say nothing, or aren't there.

use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier, OnceLock};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{HELLO, Server, expect, number, order, run};

#[test]
fn hanging_servers_time_out() {
    let server = Server::start(|mut client| {
        client.request();
        client.request();
    });
    let more = json!({"load": {"connections": 4, "timeout_s": 0.05}});
    let result = run(&order(&server.url(), 8, more));
    expect(&result, &[("/failures/timeout", 8), ("/latency_us/count", 8)]);
    assert!(result["latency_us"]["min"].as_f64() >= Some(49_000.0), "{result:#}");
}

#[test]
fn a_part_of_a_head_has_come() {
    let part = b"HTTP/1.1 200 OK\r\nContent-Le";
    let server = Server::start(|mut client| {
        client.request();
        client.write(part);
        client.request();
    });
    let result = run(&order(&server.url(), 1, json!({"load": {"timeout_s": 0.05}})));
    let samples = result["failure_samples"].to_string();
    assert!(samples.contains(&format!("({} bytes came)", part.len())), "{samples}");
}

/// It is our own fault if we are late to read.
#[test]
fn answers_to_a_client_that_stands_still_are_no_timeouts() {
    const ALL: usize = 400;
    let (all_here, pid) = (Arc::new(Barrier::new(ALL)), Arc::new(OnceLock::new()));
    let (here, stopped) = (all_here.clone(), pid.clone());
    let server = Server::start(move |mut client| {
        client.request();
        if here.wait().is_leader() {
            let _ = kill_process(*stopped.wait(), Signal::STOP);
        }
        here.wait();
        client.write(HELLO);
        if here.wait().is_leader() {
            std::thread::sleep(Duration::from_millis(4200));
            let _ = kill_process(*stopped.wait(), Signal::CONT);
        }
        client.answer_all(HELLO);
    });
    let child = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["run", "--json", "--timeout", "4s", "-c", "400", "-n", "400", &server.url()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("loadgen");
    pid.set(Pid::from_child(&child)).expect("the first");
    let output = child.wait_with_output().expect("an end");
    let result = serde_json::from_slice(&output.stdout).expect("JSON");
    expect(&result, &[("/requests/completed", 400), ("/failures/timeout", 0)]);
}

#[test]
fn what_hangs_at_the_end_is_unanswered() {
    let server = Server::start(|mut client| {
        client.request();
        client.request();
    });
    let more = json!({"duration_s": 0.05, "count": null,
                      "load": {"connections": 3, "timeout_s": 0.1}});
    let result = run(&order(&server.url(), 1, more));
    expect(&result, &[("/requests/unanswered", 3), ("/requests/drained", 0)]);
    // Whoever waits in a closed loop waits through its end.
    expect(&result, &[("/whole/failures/timeout", 3), ("/whole/unanswered", 0)]);
    expect(&result, &[("/latency_us/count", 3)]);
}

#[test]
fn late_answers_are_drained() {
    let server = Server::start(|mut client| {
        while client.request().is_some() {
            std::thread::sleep(Duration::from_millis(150));
            client.write(HELLO);
        }
    });
    let more = json!({"duration_s": 0.05, "count": null, "load": {"connections": 3}});
    let result = run(&order(&server.url(), 1, more));
    expect(&result, &[("/requests/unanswered", 3), ("/requests/drained", 3)]);
}

#[test]
fn connects_into_a_black_hole() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    rustix::net::listen(&listener, 0).expect("no backlog");
    let wait = Duration::from_millis(50);
    // The queue holds one more than the backlog; then SYNs are dropped.
    let filled: Vec<TcpStream> =
        (0..8).filter_map(|_| TcpStream::connect_timeout(&address, wait).ok()).collect();
    assert!(filled.len() < 8);
    let more = json!({"duration_s": 0.3, "count": null, "load": {"timeout_s": 0.1}});
    let result = run(&order(&format!("http://{address}/"), 1, more));
    expect(&result, &[("/requests/sent", 0), ("/connections/opened", 0)]);
    let failed = number(&result, "/failures/connect");
    assert!((1..=3).contains(&failed), "{result:#}");
}

#[test]
fn refused_connects() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one").port();
    let url = format!("http://127.0.0.1:{port}/");
    let result = run(&order(&url, 5, json!({"load": {"connections": 2, "timeout_s": 0.2}})));
    expect(&result, &[("/requests/sent", 0), ("/connections/opened", 0)]);
    assert!(number(&result, "/failures/connect") >= 2, "{result:#}");
    assert_eq!(result["ended_by"], "unreachable");
}

/// Users of several targets go on with those that live.
#[test]
fn a_dead_target_among_others_keeps_nobody() {
    let dead = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one");
    let server = Server::answering(HELLO);
    let requests = json!([{"url": server.url()}, {"url": format!("http://{dead}/")}]);
    let more = json!({"requests": requests, "sequence": [0, 1], "load": {"connections": 3}});
    let result = run(&order(&server.url(), 30, more));
    expect(&result, &[("/requests/completed", 15), ("/failures/connect", 15)]);
    assert_eq!(result["ended_by"], "count");
    // Nobody gives up while one of them answers, over connections that were opened long ago.
    let think = json!({"mean_s": 0.02, "distribution": "constant"});
    let load = json!({"connections": 3, "timeout_s": 0.05, "think": think});
    let result = run(&order(&server.url(), 60, json!({"requests": requests, "load": load})));
    assert_eq!(result["ended_by"], "count", "{result:#}");
}

#[test]
fn a_server_that_dies_and_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}/");
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut client = crate::support::Client { stream, number: 0 };
        for _ in 0..5 {
            client.request();
            client.write(HELLO);
        }
        drop(listener);
        client.request();
        drop(client);
        std::thread::sleep(Duration::from_millis(50));
        let listener = TcpListener::bind(address).expect("the same port");
        std::mem::forget(Server::listen(listener, |mut client| client.answer_all(HELLO)));
    });
    let result = run(&order(&url, 50, json!({})));
    expect(
        &result,
        &[
            ("/requests/sent", 50),
            ("/requests/completed", 50),
            ("/requests/retried", 1),
            ("/connections/opened", 2),
        ],
    );
    assert!(number(&result, "/failures/connect") >= 1, "{result:#}");
}
