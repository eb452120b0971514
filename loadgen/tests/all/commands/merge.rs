//! `loadgen merge`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{output, stderr};
use crate::layers::nginx::Nginx;
use crate::support::{HELLO, Server};

/// Runs with some flags, and keeps the result in a file.
fn kept(folder: &Path, name: &str, flags: &[&str]) -> (PathBuf, Value) {
    let told = output(&[&["run", "--json", "-q"], flags].concat());
    let file = folder.join(name);
    fs::write(&file, &told.stdout).expect("a file");
    let result = serde_json::from_slice(&told.stdout).expect("JSON");
    (file, result)
}

fn merge(files: &[&Path], flags: &[&str]) -> std::process::Output {
    let files = files.iter().map(|file| file.to_str().expect("a name"));
    output(&["merge"].into_iter().chain(files).chain(flags.iter().copied()).collect::<Vec<_>>())
}

#[test]
fn counts_and_histograms_of_clients_add_up() {
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().expect("a folder"));
    let (ca, url) = (nginx.authority.file().display().to_string(), nginx.http2("/hello.txt"));
    let run = |name: &str| {
        let secure = ["--http2", "--cacert", &ca, &url];
        let paced = ["-d", "400ms", "-c", "1", "--think", "1ms"];
        kept(folder.path(), name, &[&secure[..], &paced].concat())
    };
    let ((first, one), (second, other)) = (run("a.json"), run("b.json"));
    let told = merge(&[&first, &second], &["--json"]);
    let merged: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    for path in [
        "/requests/sent",
        "/whole/completed",
        "/by_status/200",
        "/bytes/body",
        "/service_time_us/count",
        "/connections/opened",
        "/client/threads",
    ] {
        let of = |from: &Value| from.pointer(path).and_then(Value::as_u64).expect("a number");
        assert_eq!(of(&merged), of(&one) + of(&other), "{path}");
    }
    assert_eq!(merged["target"], one["target"]);
    let most = |name: &str| {
        let of = |from: &Value| from["latency_us"][name].as_f64().expect("a number");
        (of(&merged), of(&one).max(of(&other)))
    };
    assert_eq!(most("max").0, most("max").1);
    assert!(most("p50").0 <= most("p50").1 + 1.0, "{merged:#}");
    // It is a result like others, so it can be merged again, and shown.
    let again = folder.path().join("ab.json");
    fs::write(&again, &told.stdout).expect("a file");
    let table = merge(&[&again], &["--fail-if", "p99<1h"]);
    let text = String::from_utf8_lossy(&table.stdout);
    let completed = format!("{} completed", merged["requests"]["completed"]);
    assert!(text.contains(&completed) && text.contains("HTTP/2"), "{text}");
    assert_eq!(table.status.code(), Some(5), "{}", stderr(&table));
}

#[test]
fn what_cannot_be_added_is_refused_by_name() {
    let (server, folder) = (Server::answering(HELLO), tempfile::tempdir().expect("a folder"));
    let url = server.url();
    let run = |name: &str, flags: &[&str]| {
        kept(folder.path(), name, &[&["-c", "1", &url], flags].concat()).0
    };
    let closed = run("closed.json", &["-n", "5"]);
    let open = run("open.json", &["-n", "5", "-r", "500"]);
    let never = run("never.json", &["-n", "5", "--keepalive", "never"]);
    let long = run("long.json", &["-d", "300ms"]);
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("a file");
        file
    };
    let mut result: Value = serde_json::from_slice(&fs::read(&closed).expect("it")).expect("JSON");
    result["service_time_us"]["histogram"] = json!("AAAA");
    let damaged = write("damaged.json", &result.to_string());
    result["schema"] = json!(3);
    let newer = write("newer.json", &result.to_string());
    // Its keys had other names.
    let older = write("older.json", "{\"schema\": 1, \"response_time_us\": {}}");
    let refusal = write("refusal.json", "{\"schema\": 2, \"error\": \"no\"}");
    for (other, wanted) in [
        (&open, "open.json has another loop than"),
        (&never, "another keep-alive than"),
        (&long, "for as long, at the same time"),
        (&damaged, "damaged.json: a histogram is damaged"),
        (&newer, "newer.json: is of version 3"),
        (&older, "older.json: is of version 1"),
        (&refusal, "refusal.json: is no result"),
        (&write("empty.json", "\n"), "empty.json: is empty"),
        (&folder.path().join("none.json"), "none.json: No such file"),
    ] {
        let told = merge(&[&closed, other], &[]);
        assert_eq!(told.status.code(), Some(2), "{wanted}");
        assert!(stderr(&told).contains(wanted), "{wanted}: {}", stderr(&told));
    }
    assert_eq!(output(&["merge"]).status.code(), Some(2));
}
