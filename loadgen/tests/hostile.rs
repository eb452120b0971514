//! Servers that misbehave: counts are exact, nothing hangs, nothing loops.

mod support;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use support::{HELLO, Server, expect, order, run};

const COUNT: u64 = 20;

/// Every request ends in the same failure.
fn all_fail(server: &Server, failure: &str) {
    let result = run(&order(&server.url(), COUNT, json!({"load": {"connections": 2}})));
    let path = format!("/failures/{failure}");
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
    assert_eq!(result["ended_by"], "count");
    assert!(!result["failure_samples"].as_array().expect("a list").is_empty(), "{result}");
}

/// Every request is answered validly.
fn all_complete(server: &Server, count: u64, body_bytes: u64) {
    let more = json!({"requests": [{"url": server.url(), "expect": {"body_bytes": body_bytes}}]});
    let result = run(&order(&server.url(), count, more));
    expect(
        &result,
        &[
            ("/requests/sent", count),
            ("/requests/completed", count),
            ("/bytes/body", count * body_bytes),
        ],
    );
}

#[test]
fn truncated_bodies() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    });
    all_fail(&server, "truncated");
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nHello\r\n");
    });
    all_fail(&server, "truncated");
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nContent-Le");
    });
    all_fail(&server, "truncated");
}

#[test]
fn large_truncated_bodies() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        client.write(&vec![b'x'; 999_999]);
    });
    all_fail(&server, "truncated");
}

#[test]
fn garbage() {
    all_fail(&Server::answering("SSH-2.0-OpenSSH_9.2\r\n"), "malformed");
    all_fail(&Server::answering(vec![0xff; 300]), "malformed");
    all_fail(&Server::answering("HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"), "malformed");
}

#[test]
fn a_head_without_end() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\n");
        for _ in 0..300_000 / 1_000 {
            client.write(format!("X: {}\r\n", "y".repeat(995)).as_bytes());
        }
        client.request();
    });
    all_fail(&server, "malformed");
}

#[test]
fn contradictory_lengths() {
    for fields in [
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 6",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Content-Length: minus one",
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nHello");
        all_fail(&Server::answering(answer), "malformed");
    }
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nHello";
    all_complete(&Server::answering(answer), COUNT, 5);
}

#[test]
fn bytes_after_the_end() {
    let mut answer = HELLO.to_vec();
    answer.extend_from_slice(b"more");
    all_fail(&Server::answering(answer), "malformed");
    all_fail(&Server::answering("HTTP/1.1 204 No Content\r\n\r\nbody"), "malformed");
    all_fail(
        &Server::answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX"),
        "malformed",
    );
}

#[test]
fn statuses_without_a_body() {
    let empty = "HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n";
    all_complete(&Server::answering(empty), COUNT, 0);
    let server = Server::answering("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n");
    let more = json!({"requests": [{"url": server.url(), "expect": {"status": [304]}}]});
    expect(&run(&order(&server.url(), COUNT, more)), &[("/requests/completed", COUNT)]);
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    let more = json!({"requests": [{"url": server.url(), "method": "HEAD"}]});
    expect(&run(&order(&server.url(), COUNT, more)), &[("/requests/completed", COUNT)]);
}

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
    assert!(support::number(&result, "/connections/opened") < 80, "{result:#}");
    expect(&result, &[("/requests/completed", 0)]);
}

#[test]
fn hanging_servers_time_out() {
    let server = Server::start(|mut client| {
        client.request();
        client.request();
    });
    let more = json!({"load": {"connections": 4, "timeout_s": 0.05}});
    let result = run(&order(&server.url(), 8, more));
    expect(&result, &[("/failures/timeout", 8), ("/response_time_us/count", 8)]);
    assert!(result["response_time_us"]["min"].as_f64() >= Some(49_000.0), "{result:#}");
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
fn closing_after_each_answer() {
    let answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::start(move |mut client| {
        client.request();
        client.write(answer.as_bytes());
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
    let lost = support::number(&result, "/failures/reset");
    // Whether the end is seen before the next request leaves is a matter of luck.
    expect(&result, &[("/requests/completed", COUNT - lost)]);
    assert!(lost < COUNT, "{result:#}");
}

#[test]
fn bodies_that_end_with_the_connection() {
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.1 200 OK\r\n\r\n");
        client.write(&vec![b'x'; 100_000]);
    });
    all_complete(&server, COUNT, 100_000);
    let server = Server::start(|mut client| {
        client.request();
        client.write(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok");
    });
    all_complete(&server, COUNT, 2);
}

#[test]
fn keepalive_limits_of_the_server() {
    let server = Server::start(|mut client| {
        for nth in 1..=1000 {
            if client.request().is_none() {
                return;
            }
            match nth {
                1000 => client.write(
                    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 13\r\n\r\nHello, World!",
                ),
                _ => client.write(HELLO),
            }
        }
    });
    let result = run(&order(&server.url(), 2500, json!({})));
    expect(
        &result,
        &[
            ("/requests/completed", 2500),
            ("/connections/opened", 3),
            ("/connections/reused_requests", 2497),
            ("/keepalive/server_closed", 2),
        ],
    );
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
    assert!(support::number(&result, "/requests/completed") >= COUNT / 2, "{result:#}");
}

#[test]
fn chunks_one_byte_at_a_time() {
    let server = Server::start(|mut client| {
        while client.request().is_some() {
            let answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                           5;name=\"value\"\r\nHello\r\n8\r\n, World!\r\n0\r\nTrailer: x\r\n\r\n";
            answer.iter().for_each(|byte| client.write(&[*byte]));
        }
    });
    all_complete(&server, 5, 13);
}

#[test]
fn every_split_of_an_answer() {
    let answer = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\
                   Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    let server = Server::start(move |mut client| {
        for split in 1..answer.len() {
            if client.request().is_none() {
                return;
            }
            client.write(&answer[..split]);
            std::thread::sleep(Duration::from_micros(300));
            client.write(&answer[split..]);
        }
    });
    all_complete(&server, answer.len() as u64 - 1, 3);
}

#[test]
fn many_header_lines() {
    for lines in [1, 16, 17, 200, 500] {
        let fields: String = (0..lines).map(|n| format!("X-Field-{n}: value {n}\r\n")).collect();
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 2\r\n\r\nok");
        all_complete(&Server::answering(answer), COUNT, 2);
    }
}

#[test]
fn interim_answers() {
    let mut answer = b"HTTP/1.1 100 Continue\r\n\r\n".to_vec();
    for _ in 0..3 {
        answer.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n");
    }
    answer.extend_from_slice(HELLO);
    all_complete(&Server::answering(answer), COUNT, 13);
}

#[test]
fn interim_answers_without_end() {
    let server = Server::start(|mut client| {
        client.request();
        let interim = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);
        while std::io::Write::write_all(&mut client.stream, &interim).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let result = run(&order(&server.url(), 2, json!({"load": {"timeout_s": 0.1}})));
    expect(&result, &[("/failures/timeout", 2)]);
}

#[test]
fn refused_connects() {
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one").port();
    let url = format!("http://127.0.0.1:{port}/");
    let result = run(&order(&url, 5, json!({"load": {"connections": 2, "timeout_s": 0.2}})));
    expect(&result, &[("/requests/sent", 0), ("/connections/opened", 0)]);
    assert!(support::number(&result, "/failures/connect") >= 2, "{result:#}");
    assert_eq!(result["ended_by"], "unreachable");
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
    let failed = support::number(&result, "/failures/connect");
    assert!((1..=3).contains(&failed), "{result:#}");
}

#[test]
fn a_server_that_dies_and_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}/");
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().expect("a client");
        let mut client = support::Client { stream, number: 0 };
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
            ("/requests/completed", 49),
            ("/failures/reset", 1),
            ("/connections/opened", 2),
        ],
    );
    assert!(support::number(&result, "/failures/connect") >= 1, "{result:#}");
}

#[test]
fn wrong_answers() {
    let server = Server::answering("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno");
    let result = run(&order(&server.url(), COUNT, json!({})));
    // A wrong answer is an answer: its connection stays in use.
    expect(
        &result,
        &[("/failures/status", COUNT), ("/by_status/404", COUNT), ("/connections/opened", 1)],
    );
    let sha256 = "dffd6021bb2bd5b0af676290809ec3a53191dd81c7f70a4b28688a362182986f";
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let server = Server::start(move |mut client| {
        while client.request().is_some() {
            let altered = counter.fetch_add(1, Ordering::Relaxed) >= 256;
            let answer =
                String::from_utf8_lossy(HELLO).replace('!', if altered { "?" } else { "!" });
            client.write(answer.as_bytes());
        }
    });
    let expected = json!({"body_bytes": 13, "body_sha256": sha256});
    let more = json!({"requests": [{"url": server.url(), "expect": expected}]});
    let result = run(&order(&server.url(), 600, more));
    // Of 600 answers the first, the 257th and the 513th are checksummed.
    expect(&result, &[("/failures/body", 2), ("/requests/completed", 598)]);
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
