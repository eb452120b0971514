//! `loadgen run --log-requests`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{output, stderr};
use crate::layers::nginx::Nginx;
use crate::support::{HELLO, Server};

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn number(of: &Value, name: &str) -> f64 {
    of[name].as_f64().unwrap_or_else(|| panic!("{name} in {of}"))
}

#[test]
fn each_request_of_an_open_loop_is_logged_with_its_times() {
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().expect("a folder"));
    let ca = nginx.authority.file().display().to_string();
    for (name, url, flags) in [
        ("1", nginx.tls("/hello.txt"), &[][..]),
        ("2", nginx.http2("/hello.txt"), &["--http2", "--streams", "3"]),
    ] {
        let file = folder.path().join(name);
        let path = file.display().to_string();
        let run = ["run", "-q", "-r", "400", "-n", "200", "-c", "3", "-t", "2", "--json"];
        let more = ["--cacert", &ca, "--log-requests", &path, &url];
        let told = output(&[&run[..], flags, &more].concat());
        let result: Value = serde_json::from_slice(&told.stdout).expect("JSON");
        let all = lines(&file);
        assert_eq!(all.len() as u64, result["whole"]["sent"].as_u64().expect("a count"));
        for line in &all {
            let times = ["scheduled_us", "sent_us", "first_byte_us", "end_us"];
            assert!(times.map(|name| number(line, name)).is_sorted(), "{line}");
            assert_eq!((&line["status"], &line["body_bytes"]), (&200.into(), &13.into()), "{line}");
            assert!(line["failure"].is_null() && line["url"] == *url, "{line}");
        }
        // Due times are those of the timetable.
        let mut due: Vec<f64> = all.iter().map(|line| number(line, "scheduled_us")).collect();
        due.sort_by(f64::total_cmp);
        let exact = |(nth, us): (usize, &f64)| (us - nth as f64 * 2500.0).abs() < 0.01;
        assert!(due.iter().enumerate().all(exact), "{due:?}");
        // How many are needed depends on how fast answers come.
        assert!(all.iter().all(|line| line["connection"].as_u64() < Some(3)), "{all:?}");
        let longest = all.iter().map(|line| number(line, "end_us") - number(line, "scheduled_us"));
        let max = result["latency_us"]["max"].as_f64().expect("a time");
        // Where the client stood still the result leaves times out, and the log doesn't.
        let is_whole = result["client"]["excluded_windows"] == 0;
        assert!(!is_whole || (longest.fold(0.0, f64::max) / max - 1.0).abs() < 0.01, "{result:#}");
    }
}

#[test]
fn one_in_so_many_is_logged_and_what_failed_says_how() {
    let server = Server::start(|mut client| {
        let mut count = 0;
        while client.request().is_some() {
            count += 1;
            match count {
                // It hangs at the end.
                100 => std::thread::sleep(std::time::Duration::from_secs(2)),
                nth if nth % 10 == 1 => {
                    client.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
                }
                _ => client.write(HELLO),
            }
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log");
    let path = file.display().to_string();
    let run = ["run", "-q", "-n", "100", "-c", "1", "--timeout", "300ms", "--log-requests", &path];
    let told = output(&[&run[..], &["--log-every", "10", &server.url()]].concat());
    assert_eq!(told.status.code(), Some(1), "{}", stderr(&told));
    let all = lines(&file);
    // The first, the eleventh and so on.
    assert_eq!(all.len(), 10, "{all:?}");
    assert!(all.iter().all(|line| line["failure"] == "status" && line["status"] == 503));
    let told = output(&[&run[..], &[&server.url()]].concat());
    let all = lines(&file);
    let last = all.last().expect("a line");
    assert_eq!((all.len(), &last["failure"]), (100, &"timeout".into()), "{}", stderr(&told));
    assert!(last["status"].is_null() && last["first_byte_us"].is_null(), "{last}");
    assert!(number(last, "end_us") - number(last, "sent_us") >= 299_000.0, "{last}");
}

#[test]
fn a_log_that_cannot_be_written_costs_no_figures() {
    let server = Server::answering(HELLO);
    let run = ["run", "-q", "-n", "3000", "-c", "1", "--json", "--log-requests", "/dev/full"];
    let told = output(&[&run[..], &[&server.url()]].concat());
    assert_eq!(told.status.code(), Some(4), "{}", stderr(&told));
    assert!(stderr(&told).contains("--log-requests /dev/full: "), "{}", stderr(&told));
    let result: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(result["requests"]["completed"], 3000);
}

/// Where one begins is known from its first request.
#[test]
fn connections_begin_one_after_the_other() {
    let server = Server::answering(HELLO);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log");
    let path = file.display().to_string();
    let run = ["run", "-q", "-c", "5", "-t", "2", "--conn-ramp", "500ms", "-d", "700ms"];
    let more = ["--think", "5ms", "--log-requests", &path, &server.url()];
    let told = output(&[&run[..], &more].concat());
    assert!(matches!(told.status.code(), Some(0 | 3)), "{}", stderr(&told));
    let all = lines(&file);
    for connection in 0..5 {
        let of = all.iter().filter(|line| line["connection"] == connection);
        let first = of.map(|line| number(line, "sent_us")).fold(f64::INFINITY, f64::min);
        let due = f64::from(connection) * 100_000.0;
        assert!((due..700_000.0).contains(&first), "{connection}: {first}");
    }
}

#[test]
fn bursts_are_due_at_once() {
    let server = Server::answering(HELLO);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log");
    let path = file.display().to_string();
    let run = ["run", "-q", "-r", "100", "--burst", "20", "-n", "60", "-c", "20", "-t", "2"];
    let told = output(&[&run[..], &["--log-requests", &path, &server.url()]].concat());
    assert!(matches!(told.status.code(), Some(0 | 3)), "{}", stderr(&told));
    let mut due: Vec<f64> = lines(&file).iter().map(|it| number(it, "scheduled_us")).collect();
    due.sort_by(f64::total_cmp);
    let wanted = [[0.0; 20], [200_000.0; 20], [400_000.0; 20]].concat();
    assert!(due.len() == 60 && due.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1.0), "{due:?}");
}

/// A connection that is held up sends late what was due on it, and nobody else does.
#[test]
fn each_connection_keeps_a_rate_of_its_own() {
    let server = Server::start(|mut client| {
        while client.request().is_some() {
            if client.number == 1 {
                std::thread::sleep(std::time::Duration::from_millis(250));
            }
            client.write(HELLO);
        }
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("log");
    let path = file.display().to_string();
    let run = ["run", "-q", "-c", "3", "-t", "2", "--rate-per-conn", "20", "-d", "1s", "--json"];
    let told = output(&[&run[..], &["--log-requests", &path, &server.url()]].concat());
    let result: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let mut held_up = 0;
    for connection in 0..3 {
        let all = lines(&file);
        let mine: Vec<&Value> =
            all.iter().filter(|line| line["connection"] == connection).collect();
        for (nth, line) in mine.iter().enumerate() {
            let due = (nth as f64 + f64::from(connection) / 3.0) * 50_000.0;
            assert!((number(line, "scheduled_us") - due).abs() < 1.0, "{nth} {line}");
        }
        held_up += u32::from(mine.len() < 10);
    }
    assert_eq!(held_up, 1, "{result:#}");
    // What was due and not sent, or not answered, is in the times.
    let counts =
        ["completed", "unanswered", "unsent"].map(|name| number(&result["requests"], name));
    assert_eq!(counts.iter().sum::<f64>(), 60.0, "{result:#}");
    assert_eq!(number(&result["latency_us"], "count"), 60.0, "{result:#}");
    assert!(number(&result["latency_us"], "max") > 500_000.0, "{result:#}");
}
