//! Loops, arrivals and kinds of clients, against servers whose behaviour is known.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{HELLO, Server, engine, expect, number, order, run, run_on};
use serde_json::{Value, json};
use tempfile::TempDir;

fn hanging() -> Server {
    Server::start(|mut client| while client.request().is_some() {})
}

/// Gives every request of one client this answer; the socket is in the folder, and goes with it.
fn on_unix_socket(answer: impl AsRef<[u8]> + Send + 'static) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut request = [0; 1000];
        while stream.read(&mut request).is_ok_and(|count| count > 0) {
            stream.write_all(answer.as_ref()).expect("a client");
        }
    });
    let encoded = path.display().to_string().replace('/', "%2F");
    (folder, format!("http+unix://{encoded}/x"))
}

fn open(arrivals: Value, more: Value) -> Value {
    let mut load = json!({"loop": "open", "arrivals": arrivals});
    for (key, value) in more.as_object().into_iter().flatten() {
        load[key] = value.clone();
    }
    load
}

#[test]
fn an_open_loop_sends_what_is_due() {
    let server = Server::answering(HELLO);
    for process in ["constant", "poisson"] {
        let arrivals = json!({"process": process, "stages": [{"rate_per_s": 1000.0}]});
        let load = open(arrivals, json!({"connections": 8}));
        let result = run(&order(&server.url(), 200, json!({"load": load})));
        expect(
            &result,
            &[("/requests/completed", 200), ("/requests/dropped", 0), ("/latency_us/count", 200)],
        );
        let at_most = |time: &str| result[time]["max"].as_f64();
        assert!(at_most("service_time_us") <= at_most("latency_us"), "{result:#}");
    }
}

#[test]
fn several_threads_share_one_timetable() {
    let server = Server::answering(HELLO);
    let arrivals = json!({"stages": [{"rate_per_s": 2000.0, "for_s": 0.1}]});
    let load = open(arrivals, json!({"connections": 8}));
    let more = json!({"load": load, "count": 200});
    let result = run_on(&mut engine(3), &order(&server.url(), 1, more));
    expect(&result, &[("/requests/completed", 200), ("/client/threads", 3)]);
}

#[test]
fn nothing_due_is_omitted_when_the_server_hangs() {
    let server = hanging();
    let arrivals = json!({"stages": [{"rate_per_s": 100.0, "for_s": 0.3}]});
    let load = open(arrivals, json!({"connections": 2, "timeout_s": 0.4}));
    let result = run(&order(&server.url(), 1, json!({"count": null, "load": load})));
    expect(
        &result,
        &[
            ("/requests/sent", 2),
            ("/requests/unanswered", 2),
            ("/requests/unsent", 28),
            ("/latency_us/count", 30),
            ("/service_time_us/count", 0),
        ],
    );
    // Due every 10 ms until 0.29 s, and all wait until 0.3 s: half of them 150 ms or more.
    let p50 = result["latency_us"]["p50"].as_f64().expect("a number");
    assert!((p50 - 150_000.0).abs() < 11_000.0, "{p50}");
}

/// After a ramp-up of 0.1 s 40 requests are due in a window of 0.4 s; later than 0.1 s is late.
fn abort_rule(server: &Server, share: f64, timeout_s: f64) -> Value {
    let arrivals = json!({"stages": [{"rate_per_s": 100.0}]});
    let load = open(arrivals, json!({"connections": 8, "timeout_s": timeout_s}));
    let late = json!({"share": share, "after_s": 0.1});
    let more = json!({"count": null, "load": load, "ramp_up_s": 0.1, "duration_s": 0.4,
                      "abort_rule": late});
    let result = run(&order(&server.url(), 1, more));
    expect(&result, &[("/latency_us/count", 40)]);
    result
}

#[test]
fn what_is_due_is_awaited_until_enough_of_it_is_late() {
    let result = abort_rule(&hanging(), 0.5, 3600.0);
    assert_eq!(result["ended_by"], "late", "{result:#}");
    expect(&result, &[("/failures/timeout", 0), ("/service_time_us/count", 0)]);
    // Nobody has waited for less.
    assert!(result["latency_us"]["min"].as_f64() >= Some(100_000.0), "{result:#}");
}

#[test]
fn a_few_late_requests_are_awaited() {
    let asked = AtomicU64::new(0);
    let server = Server::start(move |mut client| {
        while client.request().is_some() {
            if asked.fetch_add(1, Ordering::Relaxed) != 30 {
                client.write(HELLO);
            }
        }
    });
    let result = abort_rule(&server, 0.5, 1.0);
    assert_eq!(result["ended_by"], "duration", "{result:#}");
    expect(&result, &[("/service_time_us/count", 39), ("/whole/failures/timeout", 1)]);
}

#[test]
fn a_backlog_is_bounded_and_counted() {
    let server = hanging();
    let arrivals = json!({"max_backlog": 5, "stages": [{"rate_per_s": 100.0, "for_s": 0.3}]});
    let load = open(arrivals, json!({"connections": 1, "timeout_s": 0.1}));
    let result = run(&order(&server.url(), 1, json!({"count": null, "load": load})));
    let (sent, unsent) = (number(&result, "/requests/sent"), number(&result, "/requests/unsent"));
    let dropped = number(&result, "/requests/dropped");
    assert_eq!(sent + unsent + dropped, 30, "{result:#}");
    assert!(dropped > 0 && unsent <= 5, "{result:#}");
    expect(&result, &[("/latency_us/count", 30)]);
}

#[test]
fn stages_and_times_end_by_themselves() {
    let server = Server::answering(HELLO);
    let stages = json!([
        {"rate_per_s": 0.0, "to_rate_per_s": 1000.0, "for_s": 0.2},
        {"rate_per_s": 500.0, "for_s": 0.1},
    ]);
    let load = open(json!({"stages": stages}), json!({"connections": 8}));
    let result = run(&order(&server.url(), 1, json!({"count": null, "load": load})));
    let due = number(&result, "/requests/sent") + number(&result, "/requests/unsent");
    assert_eq!(due, 150, "{result:#}");
    let load = open(json!({"times_s": [0.0, 0.0, 0.01, 0.05]}), json!({}));
    let result = run(&order(&server.url(), 1, json!({"count": null, "load": load})));
    expect(&result, &[("/requests/completed", 4)]);
    assert_eq!(result["ended_by"], "count");
}

#[test]
fn whole_connections_can_be_due() {
    let server = Server::answering(HELLO);
    let arrivals = json!({"unit": "connection",
                          "stages": [{"rate_per_s": 200.0}]});
    let load = open(arrivals, json!({"connections": 8, "keepalive": 5}));
    let result = run(&order(&server.url(), 20, json!({"load": load})));
    expect(
        &result,
        &[
            ("/connections/opened", 20),
            ("/requests/completed", 100),
            ("/connections/reused_requests", 80),
        ],
    );
}

#[test]
fn a_dead_server_leaves_everything_unsent() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let url = format!("http://{free}/");
    let arrivals = json!({"stages": [{"rate_per_s": 100.0, "for_s": 0.2}]});
    let load = open(arrivals, json!({"connections": 4}));
    let result = run(&order(&url, 1, json!({"count": null, "load": load})));
    expect(&result, &[("/requests/sent", 0), ("/requests/unsent", 20)]);
    assert!(number(&result, "/failures/connect") > 0, "{result:#}");
}

#[test]
fn thinking_takes_time() {
    let server = Server::answering(HELLO);
    let more = json!({"load": {"think": {"mean_s": 0.02}}});
    let result = run(&order(&server.url(), 6, more));
    expect(&result, &[("/requests/completed", 6)]);
    assert!(result["measured_s"].as_f64() >= Some(0.1), "{result:#}");
}

/// What a server was asked for, in order.
fn paths(log: &Arc<Mutex<Vec<String>>>) -> Vec<String> {
    let log = log.lock().expect("a log");
    log.iter().map(|head| head.split(' ').nth(1).unwrap_or_default().to_owned()).collect()
}

fn logging(answer: &'static [u8]) -> (Server, Arc<Mutex<Vec<String>>>) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let heads = log.clone();
    let server = Server::start(move |mut client| {
        while let Some(head) = client.request() {
            heads.lock().expect("a log").push(head);
            client.write(answer);
        }
    });
    (server, log)
}

#[test]
fn weights_zipf_and_sequences_choose() {
    let (server, log) = logging(HELLO);
    let request = |path: &str, weight: f64| json!({"url": format!("{}{path}", server.url()), "weight": weight});
    let requests = json!([request("a", 1.0), request("b", 0.0), request("c", 3.0)]);
    run(&order(&server.url(), 400, json!({"requests": requests})));
    let seen = paths(&log);
    let share = |path: &str| seen.iter().filter(|p| *p == path).count();
    assert_eq!(share("/b"), 0);
    assert!((60..140).contains(&share("/a")), "{}", share("/a"));

    log.lock().expect("a log").clear();
    let requests = json!([request("a", 1.0), request("b", 1.0), request("c", 1.0)]);
    let more = json!({"requests": requests, "sequence": [2, 0, 0, 1]});
    run(&order(&server.url(), 6, more));
    assert_eq!(paths(&log), ["/c", "/a", "/a", "/b", "/c", "/a"]);

    log.lock().expect("a log").clear();
    run(&order(&server.url(), 600, json!({"requests": requests, "zipf": 2.0})));
    let seen = paths(&log);
    let share = |path: &str| seen.iter().filter(|p| *p == path).count();
    assert!(share("/a") > 2 * share("/b") && share("/b") > share("/c"), "{seen:?}");
}

#[test]
fn unix_sockets() {
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n{}", "x".repeat(50_000));
    let (_folder, url) = on_unix_socket(answer);
    let result = run(&order(&url, 20, json!({})));
    expect(&result, &[("/requests/completed", 20), ("/bytes/body", 1_000_000)]);
}

#[test]
fn on_unix_sockets_nobody_looks_away() {
    let (_folder, url) = on_unix_socket(HELLO);
    let arrivals = json!({"stages": [{"rate_per_s": 1000.0}]});
    let load = open(arrivals, json!({"send_delay_budget_s": 0.01}));
    let result = run(&order(&url, 20, json!({"load": load})));
    expect(&result, &[("/requests/completed", 20)]);
    assert_eq!(result["send_delay_us"]["budget"], 0.0);
}

#[test]
fn source_addresses_are_used_in_turn() {
    let server = Server::answering(HELLO);
    let sources = json!(["127.0.0.2", "127.0.0.3"]);
    let more = json!({"load": {"connections": 4, "source_addresses": sources}});
    expect(&run(&order(&server.url(), 40, more)), &[("/requests/completed", 40)]);
    let peers = server.peers.lock().expect("peers");
    let seen: HashSet<String> = peers.iter().map(|peer| peer.ip().to_string()).collect();
    assert_eq!(seen, HashSet::from(["127.0.0.2".to_owned(), "127.0.0.3".to_owned()]));
}

#[test]
fn several_targets() {
    let servers = [Server::answering(HELLO), Server::answering(HELLO)];
    let requests: Vec<Value> = servers.iter().map(|s| json!({"url": s.url()})).collect();
    let more = json!({"requests": requests, "sequence": [0, 1], "load": {"connections": 2}});
    let result = run(&order("", 40, more));
    expect(&result, &[("/requests/completed", 40)]);
    assert!(result["target"].as_str().is_some_and(|t| t.contains(", ")), "{result:#}");
}

#[test]
fn idle_connections_ask_once_and_are_held_beside_the_load() {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let server = Server::start(move |mut client| {
        while client.request().is_some() {
            count.fetch_add(1, Ordering::Relaxed);
            client.write(HELLO);
        }
    });
    let mut engine = engine(1);
    let mut run = |idle: u64, keepalive: &str| {
        let more = json!({"load": {"idle_connections": idle, "keepalive": keepalive}});
        let before = asked.load(Ordering::Relaxed);
        let result = run_on(&mut engine, &order(&server.url(), 5, more));
        let counts = [
            ("/requests/sent", 5),
            ("/requests/completed", 5),
            ("/by_status/200", 5),
            ("/idle_connections/held", idle),
            ("/idle_connections/failed", 0),
        ];
        expect(&result, &counts);
        (number(&result, "/connections/opened"), asked.load(Ordering::Relaxed) - before)
    };
    assert_eq!(run(100, "always"), (1, 105));
    // They are there already, and have asked.
    assert_eq!(run(100, "always"), (0, 5));
    // To close after each answer is not asked of them.
    assert_eq!(run(110, "never"), (5, 15));
}

#[test]
fn slow_readers_read_slowly_beside_the_load() {
    let body = vec![b'x'; 3_000];
    let mut answer =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend(body);
    let server = Server::answering(answer);
    let slow = json!({"connections": 2, "bytes_per_s": 10_000});
    let more = json!({"duration_s": 1.0, "count": null, "load": {"slow_readers": slow}});
    let result = run(&order(&server.url(), 1, more));
    // 3 kB at 10 kB/s: some three each second.
    let completed = number(&result, "/slow_readers/completed");
    assert!((2..=6).contains(&completed), "{result:#}");
    expect(&result, &[("/connections/opened", 1)]);
}

#[test]
fn connections_live_between_slots() {
    let server = Server::start(|mut client| {
        let first = client.number == 0;
        while client.request().is_some() {
            client.write(HELLO);
            if first {
                std::thread::sleep(Duration::from_millis(30));
                return;
            }
        }
    });
    let mut engine = engine(1);
    let once = order(&server.url(), 1, json!({}));
    expect(&run_on(&mut engine, &once), &[("/connections/opened", 1)]);
    std::thread::sleep(Duration::from_millis(100));
    // The server closed it in the meantime: that is no failure.
    let result = run_on(&mut engine, &once);
    expect(&result, &[("/connections/opened", 1), ("/requests/completed", 1)]);
    let result = run_on(&mut engine, &order(&server.url(), 5, json!({})));
    expect(&result, &[("/connections/opened", 0), ("/connections/reused_requests", 4)]);
}

#[test]
fn windows_add_up() {
    let server = Server::answering(HELLO);
    let more =
        json!({"duration_s": 0.5, "count": null, "window_s": 0.1, "load": {"connections": 2}});
    let result = run_on(&mut engine(2), &order(&server.url(), 1, more));
    let windows = result["windows"].as_array().expect("a list");
    assert!((4..=6).contains(&windows.len()), "{}", windows.len());
    let sum = |name: &str| windows.iter().filter_map(|w| w[name].as_u64()).sum::<u64>();
    expect(&result, &[("/requests/sent", sum("sent")), ("/requests/completed", sum("completed"))]);
}
