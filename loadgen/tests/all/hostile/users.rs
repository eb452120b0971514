//! What users keep and ask for: cookies, other protocols, sockets that are full.

use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, HELLO, Server, engine, expect, order, run, run_on};

const GIVES: &[u8] =
    b"HTTP/1.1 200 OK\r\nSet-Cookie: session=42; Path=/\r\nContent-Length: 2\r\n\r\nok";

/// A server that gives a cookie, and the `Cookie` lines of what it was asked.
fn giving() -> (Server, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let server = Server::start(move |mut client| {
        while let Some(head) = client.request() {
            let lines = head.lines().filter(|line| line.to_lowercase().starts_with("cookie:"));
            log.lock().expect("a log").push(lines.collect::<Vec<_>>().join("|"));
            client.write(GIVES);
        }
    });
    (server, asked)
}

fn taken(asked: &Mutex<Vec<String>>) -> Vec<String> {
    std::mem::take(&mut *asked.lock().expect("a log"))
}

#[test]
fn cookies_belong_to_the_user() {
    let (server, asked) = giving();
    let cookies = |cookies: bool, keepalive: Value| {
        order(&server.url(), 3, json!({"load": {"cookies": cookies, "keepalive": keepalive}}))
    };
    run(&cookies(true, json!("never")));
    assert_eq!(taken(&asked), ["", "Cookie: session=42", "Cookie: session=42"]);
    // A slot that wants none has none, also over a connection that had some.
    let mut engine = engine(1);
    run_on(&mut engine, &cookies(true, json!("always")));
    taken(&asked);
    run_on(&mut engine, &cookies(false, json!("always")));
    assert_eq!(taken(&asked), ["", "", ""]);
    // There is one field, whoever gives what is in it.
    let mut mixed = cookies(true, json!("always"));
    mixed["requests"][0]["headers"] = json!({"cookie": "a=b"});
    run(&mixed);
    let both = "cookie: a=b; session=42";
    assert_eq!(taken(&asked), ["cookie: a=b", both, both]);
}

#[test]
fn a_switch_of_protocols_is_an_answer_where_it_was_asked_for() {
    let answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                   Connection: Upgrade\r\n\r\n\x81\x05hello";
    let server = Server::start(move |mut client| {
        client.request();
        client.write(answer);
        client.request();
    });
    let headers = json!({"Upgrade": "websocket", "Connection": "Upgrade"});
    for expected in [json!({}), json!({"status": [101]})] {
        let request = json!({"url": server.url(), "headers": headers, "expect": expected});
        let result = run(&order(&server.url(), 6, json!({"requests": [request]})));
        expect(&result, &[("/requests/completed", 6), ("/by_status/101", 6)]);
        expect(&result, &[("/connections/opened", 6)]);
    }
    let unasked = run(&order(&server.url(), 2, json!({})));
    expect(&unasked, &[("/failures/malformed", 2)]);
}

/// There is no event for room in the queue of a Unix socket.
#[test]
fn a_full_queue_of_a_unix_socket_is_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    rustix::net::listen(&listener, 1).expect("a queue");
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            std::thread::sleep(Duration::from_millis(5));
            std::thread::spawn(|| Client { stream, number: 0 }.answer_all(HELLO));
        }
    });
    let url = format!("http+unix://{}/x", path.display().to_string().replace('/', "%2F"));
    let result = run(&order(&url, 100, json!({"load": {"connections": 20}})));
    expect(&result, &[("/requests/completed", 100), ("/failures/connect", 0)]);
    expect(&result, &[("/connections/opened", 20), ("/connect_time_us/count", 20)]);
}

/// What was answered is told also where only the head had come with the first read.
#[test]
fn a_refusal_is_told_with_its_body() {
    let page = "x".repeat(20_000);
    for (body, told) in [("Wrong name", ", beginning with: Wrong name"), (&page, "xxx")] {
        let head = format!("HTTP/1.1 403 Forbidden\r\nContent-Length: {}\r\n\r\n", body.len());
        let body = body.to_owned();
        let server = Server::start(move |mut client| {
            while client.request().is_some() {
                client.write(head.as_bytes());
                std::thread::sleep(Duration::from_millis(20));
                client.write(body.as_bytes());
            }
        });
        let request = json!({"url": server.url(), "expect": {"status": [200]},
                             "capture": {"token": {"header": "X-Token"}}});
        let result = run(&order(&server.url(), 1, json!({"requests": [request]})));
        let samples = result["failure_samples"].to_string();
        assert!(samples.contains("it answered 403") && samples.contains(told), "{samples}");
    }
}
