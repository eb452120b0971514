//! What ends or stops a run: Ctrl-C, a closed terminal, a stopped process.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::loadgen;
use crate::support::{HELLO, Server};

#[test]
fn an_interrupt_prints_what_was_measured() {
    // A terminal that is closed is one, too.
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::HUP] {
        prints_what_was_measured(signal);
    }
}

fn prints_what_was_measured(signal: rustix::process::Signal) {
    let server = Server::answering(HELLO);
    let child = loadgen(&["run", "-d", "60s", "--json", "-c", "2", &server.url()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("loadgen");
    while server.connections.load(std::sync::atomic::Ordering::Relaxed) < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).expect("a process");
    let output = child.wait_with_output().expect("an end");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["ended_by"], "interrupt");
}

fn interrupt(child: &Child) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a process");
}

/// Nobody who presses Ctrl-C, even twice, waits for a server or loses the result.
#[test]
fn an_interrupt_waits_for_no_answer() {
    let server = Server::start(|mut client| {
        client.request();
        client.request();
    });
    let child =
        loadgen(&["run", "-d", "50s", "--timeout", "60s", "--json", "-c", "2", &server.url()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("loadgen");
    while server.connections.load(std::sync::atomic::Ordering::Relaxed) < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    interrupt(&child);
    interrupt(&child);
    let output = child.wait_with_output().expect("an end");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(result["ended_by"], "interrupt");
    assert_eq!(result["requests"]["unanswered"], 2);
    assert!(result["drain_s"].as_f64() < Some(30.0), "{result:#}");
}

#[test]
fn a_client_that_stood_still_says_so_and_leaves_that_out() {
    use rustix::process::{Pid, Signal, kill_process};
    let server = Server::answering(HELLO);
    let child =
        loadgen(&["run", "-d", "2s", "--window", "100ms", "--json", "-c", "2", &server.url()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("loadgen");
    while server.connections.load(std::sync::atomic::Ordering::Relaxed) < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::STOP).expect("a process");
    std::thread::sleep(Duration::from_millis(600));
    kill_process(pid, Signal::CONT).expect("a process");
    let output = child.wait_with_output().expect("an end");
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let client = &result["client"];
    assert!(client["stalled_windows"].as_u64() >= Some(6), "{result:#}");
    assert!(client["stalled_s"].as_f64() >= Some(0.55), "{result:#}");
    let rows = result["windows"].as_array().expect("a list");
    let kept: Vec<&Value> = rows.iter().filter(|row| row["stalled"] == false).collect();
    let sum = |name: &str| kept.iter().filter_map(|row| row[name].as_f64()).sum::<f64>();
    let rate = result["throughput_rps"].as_f64().expect("a number");
    assert!((sum("completed") / sum("length_s") / rate - 1.0).abs() < 0.001, "{result:#}");
}
