//! Files that `loadgen run` reads and writes.

use std::process::Command;

use serde_json::Value;

use super::{output, stderr};
use crate::support::{HELLO, Server};

#[test]
fn files_are_written_and_read() {
    let server = Server::answering(HELLO);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (csv, hdr, requests) = (path("o.csv"), path("o.hdr"), path("requests.jsonl"));
    std::fs::write(&requests, format!("{{\"url\": \"{}\"}}\n", server.url())).expect("a file");
    let args = ["run", "-n", "20", "-c", "1", "--csv", &csv, "--hdr", &hdr, "--traffic", &requests];
    let told = output(&args);
    assert!(String::from_utf8_lossy(&told.stdout).contains("20 completed"), "{}", stderr(&told));
    let csv = std::fs::read_to_string(csv).expect("a file");
    assert_eq!(csv.lines().count(), 2);
    let columns = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|line| columns(line) == columns(csv.lines().next().expect("one"))));
    assert!(std::fs::read_to_string(hdr).expect("a file").contains("Total count =           20"));
}

/// Who wrote the file could have requests sent to Docker.
#[test]
fn a_file_of_requests_leads_to_no_unix_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let requests = folder.path().join("requests.jsonl").display().to_string();
    for scheme in ["http+unix", "HTTP+unix", "http+UNIX", "HTTP+Unix", "ws+unix"] {
        std::fs::write(&requests, format!("{{\"url\": \"{scheme}://%2Frun%2Fdocker.sock/\"}}\n"))
            .expect("a file");
        let refused = output(&["run", "-n", "1", "-c", "1", "--traffic", &requests]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("names a Unix socket"), "{}", stderr(&refused));
    }
}

#[test]
fn a_log_is_replayed_in_order_and_in_time() {
    let server = Server::answering(HELLO);
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("access.log");
    let line = |n: usize| {
        let second = n / 100;
        format!(
            "::1 - - [21/Nov/2026:10:00:{second:02} +0000] \"GET /{n} HTTP/1.1\" 200 13 \"-\" \"x\"\n"
        )
    };
    let mut text: String = (0..200).map(line).collect();
    text.insert_str(0, "this is not a line of a log\n");
    std::fs::write(&log, text).expect("a file");
    let url = server.url();
    let log = log.display().to_string();
    let args = ["run", "--replay", &log, "--replay-speed", "4", "-c", "4", "--json", &url];
    let told = output(&args);
    let result: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(result["requests"]["completed"], 200, "{result:#}");
    assert!(stderr(&told).contains("access.log:1:"), "{}", stderr(&told));
    // Two seconds at fourfold speed: the last line is due after 1.99 / 4 seconds.
    assert!(result["measured_s"].as_f64() >= Some(0.4975), "{result:#}");
}

/// Nobody writes into the pipe, and the device has no end.
#[test]
fn pipes_and_devices_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let url = "https://127.0.0.1:1/";
    for file in [&*pipe.display().to_string(), "/dev/zero"] {
        for args in [
            &["run", "-D", &format!("@{file}"), url][..],
            &["run", "--traffic", file],
            &["run", "--times", file, url],
            &["run", "--replay", file, url],
            &["run", "--cacert", file, url],
            &["run", "--cert", file, "--key", file, url],
            &["merge", file],
        ] {
            let told = output(args);
            assert_eq!(told.status.code(), Some(2), "{args:?}: {}", stderr(&told));
            assert!(stderr(&told).contains("no regular file"), "{args:?}: {}", stderr(&told));
        }
    }
}

#[test]
fn bodies_are_bytes_and_their_length_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("body");
    std::fs::write(&file, [0xff, 0, 0xfe]).expect("a file");
    let from_file = format!("@{}", file.display());
    for (data, wanted) in [(&["-D", &from_file][..], 3), (&[], 0)] {
        let (sender, heads) = std::sync::mpsc::channel();
        let server = Server::start(move |mut client| {
            let head = client.request().expect("a request");
            let mut body = vec![0; wanted];
            std::io::Read::read_exact(&mut client.stream, &mut body).expect("a body");
            let _ = sender.send((head, body));
            client.write(HELLO);
        });
        let url = server.url();
        let args = [&["run", "-n", "1", "-c", "1", "-q", "--method", "POST", &url], data];
        // A client is busy all the time that so short a run takes.
        assert!(matches!(output(&args.concat()).status.code(), Some(0 | 3)));
        let (head, body) = heads.recv().expect("a request");
        assert!(head.contains(&format!("\r\nContent-Length: {wanted}\r\n")), "{head}");
        assert_eq!(body, [0xff, 0, 0xfe][..wanted]);
    }
}
