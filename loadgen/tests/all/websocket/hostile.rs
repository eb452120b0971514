//! Servers that break the rules: counts are exact, nothing hangs, nothing loops.

use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::layers::websocket::{CLOSE, PING, Socket, TEXT, accepting, frame, messages};
use crate::support::{Server, expect, number, run};

const COUNT: u64 = 12;

/// Each message is answered by these bytes.
fn answering(bytes: Vec<u8>) -> Server {
    server(move |mut socket| {
        while socket.message().is_some() {
            socket.write(&bytes);
        }
    })
}

fn server(script: impl Fn(Socket<TcpStream>) + Send + Sync + 'static) -> Server {
    Server::start(move |client| Socket::begin(client).into_iter().for_each(&script))
}

/// Every message ends in the same failure, for a reason that is named.
fn all_fail(server: &Server, failure: &str, why: &str) -> Value {
    let more = json!({"load": {"connections": 2, "timeout_s": 0.3}});
    let result = run(&messages(server.address, COUNT, more));
    let path = format!("/failures/{failure}");
    expect(&result, &[("/requests/sent", COUNT), ("/requests/completed", 0), (&path, COUNT)]);
    assert_eq!(result["ended_by"], "count");
    assert!(result["failure_samples"].to_string().contains(why), "{result:#}");
    result
}

#[test]
fn wrong_frames() {
    for (bytes, why) in [
        (vec![0xc1, 1, b'x'], "reserved bits"),
        (vec![0x83, 0], "no known kind"),
        (vec![TEXT, 0x81, 1, 2, 3, 4, b'x'], "masked"),
        (vec![PING, 126, 0, 126], "longer than 125"),
        (vec![0x09, 0], "in parts"),
        (vec![0x80, 1, b'x'], "had not begun"),
        ([frame(0x01, b"a"), frame(TEXT, b"b")].concat(), "within another"),
        (vec![TEXT, 127, 0xff, 0, 0, 0, 0, 0, 0, 0], "too large"),
        (vec![TEXT, 126, 0, 1, b'x'], "shortest"),
        (vec![CLOSE, 1, 3], "half a code"),
        ([frame(TEXT, b"a"), frame(TEXT, b"b")].concat(), "nobody had asked"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(), "reserved bits"),
    ] {
        all_fail(&answering(bytes), "malformed", why);
    }
}

#[test]
fn huge_lengths_are_waited_for_until_the_timeout() {
    let huge = [&[TEXT, 127][..], &i64::MAX.to_be_bytes(), &[b'x'; 100_000]].concat();
    all_fail(&answering(huge), "timeout", "no full answer");
}

#[test]
fn servers_end_it_with_and_without_a_code() {
    for (payload, code, why) in [
        (&b""[..], "1005", "1005 no code"),
        (b"\x03\xe9", "1001", "1001 going away"),
        (b"\x03\xf3oops", "1011", "1011 internal error (oops)"),
        (b"\x0f\xa1", "4001", "4001"),
    ] {
        let server = answering(frame(CLOSE, payload));
        let result = all_fail(&server, "reset", why);
        expect(
            &result,
            &[(&format!("/by_close_code/{code}"), COUNT), ("/keepalive/server_closed", COUNT)],
        );
        // In the middle of a message.
        let bytes = [frame(0x01, b"begun"), frame(CLOSE, payload)].concat();
        all_fail(&answering(bytes), "truncated", why);
    }
    // After an answer it is none of its failures.
    let server = answering([frame(TEXT, b"x"), frame(CLOSE, b"\x03\xe8")].concat());
    let result = run(&messages(server.address, COUNT, json!({})));
    let counts = [
        ("/requests/completed", COUNT),
        ("/connections/opened", COUNT),
        ("/keepalive/server_closed", COUNT),
        ("/by_close_code/1000", COUNT),
    ];
    expect(&result, &counts);
}

#[test]
fn connections_that_end_early() {
    let closing = server(|mut socket| drop(socket.message()));
    all_fail(&closing, "reset", "closed without an answer");
    let half = server(|mut socket| {
        socket.message();
        let _ = socket.stream().shutdown(Shutdown::Write);
        while socket.message().is_some() {}
    });
    all_fail(&half, "reset", "closed without an answer");
    let cut = server(|mut socket| {
        socket.message();
        socket.write(&[TEXT, 100, b'o']);
    });
    all_fail(&cut, "truncated", "in the middle");
    let within_a_head = server(|mut socket| {
        socket.message();
        socket.write(&[TEXT]);
    });
    all_fail(&within_a_head, "reset", "closed");
    let resetting = server(|mut socket| {
        socket.message();
        socket.reset();
    });
    all_fail(&resetting, "reset", "reset");
}

#[test]
fn answers_byte_by_byte() {
    let server = server(|mut socket| {
        while socket.message().is_some() {
            for byte in [frame(0x01, b"ab"), frame(PING, b"p"), frame(0x80, b"c")].concat() {
                socket.write(&[byte]);
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
    let result = run(&messages(server.address, COUNT, json!({})));
    expect(&result, &[("/requests/completed", COUNT), ("/bytes/body", 3 * COUNT)]);
    expect(&result, &[("/first_byte_time_us/count", COUNT), ("/connections/opened", 1)]);
}

/// They bring no answer nearer, and nobody listens to them for ever.
#[test]
fn floods_of_pings() {
    let server = server(|socket| {
        let pings = frame(PING, &[7; 125]).repeat(100);
        let mut stream = socket.stream();
        while std::io::Write::write_all(&mut stream, &pings).is_ok() {}
    });
    let begun = Instant::now();
    all_fail(&server, "timeout", "no full answer");
    assert!(begun.elapsed() < Duration::from_secs(30));
}

/// Trying again would change nothing, so the load ends, and says why.
#[test]
fn handshakes_that_are_none() {
    type Answer = fn(&str) -> Vec<u8>;
    fn with(request: &str, from: &str, to: &str) -> Vec<u8> {
        accepting(request).replace(from, to).into()
    }
    let cases: [(Answer, &str); 7] = [
        (|request| with(request, "Accept: ", "Accept: A"), "Sec-WebSocket-Accept"),
        (|request| with(request, "Upgrade: websocket", "Upgrade: h2c"), "something else"),
        (
            |request| with(request, "\r\n\r\n", "\r\nSec-WebSocket-Extensions: x\r\n\r\n"),
            "an extension that nobody offered (x)",
        ),
        (|_| b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n".into(), "status 404 instead of 101"),
        (
            |_| b"HTTP/1.1 301 X\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n".into(),
            "redirects to /there",
        ),
        (|_| b"SSH-2.0-OpenSSH_9.2\r\n".into(), "no WebSocket"),
        (
            |request| [accepting(request).as_bytes(), &frame(TEXT, b"hi")].concat(),
            "nobody had asked",
        ),
    ];
    for (answer, why) in cases {
        let server = Server::start(move |mut client| {
            if let Some(request) = client.request() {
                client.write(&answer(&request));
                client.request();
            }
        });
        let result = run(&messages(server.address, COUNT, json!({"load": {"timeout_s": 0.3}})));
        assert!(result["failure_samples"].to_string().contains(why), "{why}: {result:#}");
        assert_eq!(result["ended_by"], "unreachable");
        expect(&result, &[("/requests/sent", 0)]);
    }
}

#[test]
fn a_server_that_is_busy_is_tried_again() {
    let server = Server::start(|mut client| {
        let Some(request) = client.request() else { return };
        if client.number < 3 {
            return client.write(b"HTTP/1.1 503 X\r\nContent-Length: 0\r\n\r\n");
        }
        client.write(accepting(&request).as_bytes());
        Socket::begun(client).echo_all();
    });
    let result = run(&messages(server.address, COUNT, json!({})));
    expect(&result, &[("/requests/completed", COUNT), ("/failures/connect", 3)]);
    assert!(result["failure_samples"].to_string().contains("503"), "{result:#}");
}

#[test]
fn a_handshake_without_an_answer_is_not_waited_for_longer_than_the_timeout() {
    let server = Server::start(|mut client| {
        client.request();
        client.request();
    });
    let more = json!({"duration_s": 0.5, "count": null, "load": {"timeout_s": 0.2}});
    let result = run(&messages(server.address, 1, more));
    assert!(result["failure_samples"].to_string().contains("not ready within 0.2 s"), "{result:#}");
    expect(&result, &[("/requests/sent", 0)]);
}

/// A kept connection on which a message comes that nobody asked for is of no use.
#[test]
fn messages_that_nobody_asked_for() {
    let server = server(|mut socket| {
        while socket.message().is_some() {
            socket.send(TEXT, b"x");
            std::thread::sleep(Duration::from_millis(2));
            socket.send(TEXT, b"news");
        }
    });
    let more = json!({"load": {"think": {"mean_s": 0.1}}});
    let result = run(&messages(server.address, COUNT, more));
    expect(&result, &[("/connections/opened", COUNT)]);
    // Where the client looks late, it comes with the answer.
    let answered = number(&result, "/requests/completed");
    expect(&result, &[("/failures/malformed", COUNT - answered)]);
    assert!(result["failure_samples"].to_string().contains("nobody had asked"), "{result:#}");
}
