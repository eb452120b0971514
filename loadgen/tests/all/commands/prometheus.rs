//! `loadgen run --prometheus`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::{loadgen, output, stderr};
use crate::support::{HELLO, Server};

/// Each sample by its name and labels; every line has to be one, or say what it is about.
fn samples(file: &Path) -> BTreeMap<String, f64> {
    let text = fs::read_to_string(file).expect("a file");
    assert!(text.ends_with('\n'), "{text}");
    let mut samples = BTreeMap::new();
    let mut named = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            named = rest.split(' ').nth(1).expect("a name").to_owned();
            continue;
        }
        let (name, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(name.starts_with(&named), "{name} stands below {named}");
        assert!(samples.insert(name.to_owned(), value.parse().expect("a number")).is_none());
    }
    samples
}

#[test]
fn metrics_grow_with_the_load_and_end_with_its_counts() {
    let server = Server::answering(HELLO);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("loadgen.prom");
    let (path, url) = (file.display().to_string(), server.url());
    let child = loadgen(&["run", "-d", "1s", "--window", "50ms", "-c", "2", "--json"])
        .args(["--prometheus", &path, &url])
        .stdout(Stdio::piped())
        .spawn()
        .expect("loadgen");
    let mut seen = Vec::new();
    while seen.len() < 3 {
        std::thread::sleep(Duration::from_millis(5));
        if file.exists() {
            let now = samples(&file);
            let sent = now["loadgen_requests_total"];
            if now["loadgen_running"] == 1.0 && !seen.contains(&sent) {
                seen.push(sent);
            }
        }
    }
    assert!(seen.is_sorted(), "{seen:?}");
    let output = child.wait_with_output().expect("an end");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let last = samples(&file);
    assert_eq!(last["loadgen_running"], 0.0);
    for (name, path) in [
        ("loadgen_requests_total", "/whole/sent"),
        ("loadgen_valid_responses_total", "/whole/completed"),
        ("loadgen_responses_total{status=\"200\"}", "/whole/by_status/200"),
        ("loadgen_received_bytes_total{part=\"body\"}", "/whole/bytes/body"),
        ("loadgen_failures_total{kind=\"timeout\"}", "/whole/failures/timeout"),
    ] {
        assert_eq!(Some(last[name]), result.pointer(path).and_then(Value::as_f64), "{name}");
    }
    let count = last["loadgen_latency_seconds_count"];
    assert_eq!(last["loadgen_latency_seconds_bucket{le=\"+Inf\"}"], count);
    assert!(count > 0.0 && count <= last["loadgen_requests_total"]);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn what_is_no_file_is_not_replaced() {
    for (path, wanted) in [("/dev/null", "is no regular file"), ("/dev/null/x", "--prometheus")] {
        let told = output(&["run", "-n", "5", "--prometheus", path, "http://127.0.0.1:9/"]);
        assert_eq!(told.status.code(), Some(2), "{path}");
        assert!(stderr(&told).contains(wanted), "{}", stderr(&told));
    }
}
