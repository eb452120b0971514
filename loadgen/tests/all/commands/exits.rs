//! How `loadgen run` ends.

use std::process::Stdio;
use std::time::Duration;

use super::{loadgen, output, stderr};
use crate::support::{HELLO, Server};

/// A server that hangs at the end of a run is one that failed.
#[test]
fn what_fails_while_draining_is_told_and_counts() {
    let begun = std::time::Instant::now();
    let server = Server::start(move |mut client| {
        while client.request().is_some() {
            if begun.elapsed() < Duration::from_millis(100) {
                client.write(HELLO);
            }
        }
    });
    let run = ["run", "-q", "-c", "2", "-d", "300ms", "--timeout", "400ms"];
    let output = output(&[&run[..], &["--fail-if", "failures>1", &server.url()]].concat());
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert_eq!(output.status.code(), Some(5), "{told}");
    assert!(told.contains("2 timeout") && told.contains("failures>1 is true: it is 2"), "{told}");
}

#[test]
fn exit_codes() {
    let server = Server::answering(HELLO);
    let url = server.url();
    let slow = ["run", "-n", "5", "-c", "1", "--think", "5ms", "-q", &url];
    // A busy machine may keep the client from its work.
    assert!(matches!(output(&slow).status.code(), Some(0 | 3)));
    let limited = output(&[&slow[..], &["--fail-if", "p99<1h"]].concat());
    assert_eq!(limited.status.code(), Some(5));
    assert!(stderr(&limited).contains("p99<1h is true"), "{}", stderr(&limited));
    let wrong = output(&["run", "-n", "5", "-c", "1", "--expect-status", "404", &url]);
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(output(&["run", "--nonsense"]).status.code(), Some(2));
}

#[test]
fn a_tolerance_for_failures_decides_about_them() {
    let server = Server::start(|mut client| {
        while client.request().is_some() {
            client.write(HELLO);
            if client.request().is_some() {
                client.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let url = server.url();
    // Pauses, so that the client isn't the limit.
    let run = ["run", "-q", "-n", "10", "-c", "1", "--think", "5ms", &url];
    for (limit, code) in [(None, 1), (Some("failures>5"), 0), (Some("failures>4"), 5)] {
        let limits: Vec<&str> = limit.into_iter().flat_map(|limit| ["--fail-if", limit]).collect();
        let output = output(&[&run[..], &limits].concat());
        let found = output.status.code();
        // A busy machine may keep the client from its work.
        assert!(found == Some(code) || code == 0 && found == Some(3), "{}", stderr(&output));
    }
}

/// It answers two requests on each connection, and closes under the third.
#[test]
fn requests_that_had_to_be_retried_may_be_limited() {
    let server = Server::start(|mut client| {
        for _ in 0..2 {
            if client.request().is_some() {
                client.write(HELLO);
            }
        }
        client.request();
    });
    let url = server.url();
    let run = ["run", "-q", "-n", "20", "-c", "1", "--think", "5ms", &url];
    for (limit, code) in
        [("retried>9", 0), ("retried>8", 5), ("retried>50%", 0), ("retried>40%", 5)]
    {
        let told = output(&[&run[..], &["--fail-if", limit]].concat());
        let found = told.status.code();
        // A busy machine may keep the client from its work.
        assert!(found == Some(code) || code == 0 && found == Some(3), "{}", stderr(&told));
    }
}

#[test]
fn output_that_cannot_be_written_is_told() {
    let server = Server::answering(HELLO);
    for json in [&["--json"][..], &[]] {
        let url = server.url();
        let args = [&["run", "-n", "5", "-c", "1", "-q", &url], json].concat();
        let full = std::fs::File::create("/dev/full").expect("a device");
        let told = loadgen(&args).stdout(full).stderr(Stdio::piped()).output().expect("loadgen");
        assert_eq!(told.status.code(), Some(4), "{}", stderr(&told));
        assert!(stderr(&told).contains("No space left"), "{}", stderr(&told));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let told = loadgen(&args).stdout(writer).stderr(Stdio::piped()).output().expect("loadgen");
        assert_eq!(told.status.code(), Some(4), "{}", stderr(&told));
        assert!(!stderr(&told).contains("panic"), "{}", stderr(&told));
    }
}

#[test]
fn a_share_of_failures_may_be_tolerated() {
    let server = Server::start(|mut client| {
        let mut count = 0;
        while client.request().is_some() {
            count += 1;
            let status = if count % 20 == 0 { "500 No" } else { "200 OK" };
            client.write(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    });
    for (limit, code) in [("failures>6%", 0), ("failures>4%", 5)] {
        let ended = output(&["run", "-n", "100", "-c", "1", "--fail-if", limit, &server.url()]);
        let found = ended.status.code();
        // A busy machine may keep the client from its work.
        assert!(found == Some(code) || code == 0 && found == Some(3), "{}", stderr(&ended));
    }
}

#[test]
fn a_limit_ends_the_load_early() {
    // It breaks down after the first answers.
    let server = Server::start(|mut client| {
        for nth in 0.. {
            if client.request().is_none() {
                return;
            }
            let status = if nth < 50 { "200 OK" } else { "500 No" };
            client.write(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
        }
    });
    let run =
        ["run", "-q", "-d", "60s", "--window", "100ms", "--think", "1ms", "-c", "2", "-t", "2"];
    let calm = Server::answering(HELLO);
    for (server, limits, wanted) in [
        (
            &server,
            &["--stop-if", "failures>1000000", "--stop-if", "failures > 20%"][..],
            "failures > 20%",
        ),
        (&calm, &["--stop-if", "p50>0us", "--ramp-up", "200ms"], "p50>0us"),
        (&calm, &["--stop-if", "throughput<1000000"], "throughput<1000000"),
    ] {
        let told = output(&[&run[..], limits, &["--json", &server.url()]].concat());
        assert_eq!(told.status.code(), Some(5), "{}", stderr(&told));
        let why = format!("s: {wanted} is true: it is ");
        assert!(stderr(&told).contains(&why), "{}", stderr(&told));
        let result: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
        assert_eq!(result["ended_by"], "limit");
        assert!(result["whole"]["length_s"].as_f64() < Some(50.0), "{result:#}");
        assert_eq!(result["whole"]["unanswered"], 0);
    }
    // A limit that is not crossed changes nothing.
    let run = ["run", "-q", "-d", "300ms", "--window", "50ms", "--think", "5ms", "-c", "1"];
    let told = output(&[&run[..], &["--stop-if", "failures>0", &calm.url()]].concat());
    // A busy machine may keep the client from its work.
    assert!(matches!(told.status.code(), Some(0 | 3)), "{}", stderr(&told));
}
