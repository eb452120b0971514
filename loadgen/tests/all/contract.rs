//! The program as others use it: orders in, results out.
//! `tests/generator/test_contract.py` holds both against the committed schemas.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use crate::support::{HELLO, Server, order};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Value, json};

struct Serving {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Serving {
    fn start() -> Serving {
        let mut child = loadgen(&["serve"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("loadgen");
        let (input, output) = (child.stdin.take(), child.stdout.take().expect("a pipe"));
        Serving { child, input, output: BufReader::new(output) }
    }

    fn ask(&mut self, line: &str) -> Value {
        self.ask_bytes(line.as_bytes())
    }

    fn ask_bytes(&mut self, line: &[u8]) -> Value {
        let input = self.input.as_mut().expect("open");
        input.write_all(&[line, b"\n"].concat()).expect("listening");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("an answer");
        serde_json::from_str(&answer).expect("JSON")
    }
}

fn loadgen(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadgen"));
    command.args(args);
    command
}

fn output(args: &[&str]) -> Output {
    loadgen(args).output().expect("loadgen")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn serving_goes_on_after_a_wrong_order_and_ends_with_its_input() {
    let server = Server::answering(HELLO);
    let mut serving = Serving::start();
    let told = serving.ask_bytes(b"{\"id\": \"\xff\"}");
    assert!(told["error"].as_str().is_some_and(|error| error.contains("no text")), "{told}");
    for (line, wanted) in [
        ("nonsense", "the order is wrong"),
        (r#"{"id": "x", "requests": []}"#, "load"),
        (
            r#"{"id": "x", "requests": [], "load": {"loop": "closed", "connections": 1}}"#,
            "requests",
        ),
    ] {
        let refusal = serving.ask(line);
        assert!(refusal["error"].as_str().expect("text").contains(wanted), "{refusal}");
    }
    let good = serving.ask(&order(&server.url(), 3, json!({})).to_string());
    assert_eq!(good["requests"]["completed"], 3);
    drop(serving.input.take());
    assert_eq!(serving.child.wait().expect("an end").code(), Some(0));
}

#[test]
fn histograms_can_be_decoded() {
    use base64::Engine as _;
    let server = Server::answering(HELLO);
    let result = crate::support::run(&order(&server.url(), 100, json!({})));
    let text = result["service_time_us"]["histogram"].as_str().expect("text");
    let bytes = base64::prelude::BASE64_STANDARD.decode(text).expect("base64");
    let histogram: Histogram<u64> =
        Deserializer::new().deserialize(&mut bytes.as_slice()).expect("HDR V2");
    assert_eq!(histogram.len(), 100);
    let max = result["service_time_us"]["max"].as_f64().expect("a number");
    assert!((histogram.max() as f64 - max).abs() <= 1.0 + max / 500.0);
}

#[test]
fn requests_of_an_endpoint_are_told_of_apart_and_bodies_may_be_bytes() {
    let server = Server::answering(HELLO);
    let mut asked = order(&server.url(), 400, json!({}));
    let request = |endpoint: &str, weight: f64, expect: Value| {
        json!({"url": server.url(), "endpoint": endpoint, "weight": weight, "expect": expect,
               "method": "POST", "body": {"base64": "/wA="}})
    };
    asked["requests"] = json!([
        request("often", 1.0, json!({})),
        request("often", 1.0, json!({})),
        request("wrong", 1.0, json!({"status": [404]})),
        json!({"url": server.url()}),
    ]);
    let result = crate::support::run(&asked);
    let [often, wrong] = result["endpoints"].as_array().expect("a list").as_slice() else {
        panic!("{result:#}")
    };
    assert_eq!((&often["endpoint"], &wrong["endpoint"]), (&json!("often"), &json!("wrong")));
    let count = |of: &Value, what: &str| of[what].as_u64().expect("a number");
    assert!((120..280).contains(&count(often, "completed")), "{result:#}");
    assert_eq!((count(often, "failed"), count(wrong, "completed")), (0, 0));
    assert_eq!(count(wrong, "failed"), result["failures"]["status"].as_u64().expect("a number"));
    assert_eq!(often["response_time_us"]["count"], often["completed"]);
    let plain = crate::support::run(&order(&server.url(), 3, json!({})));
    assert!(plain.get("endpoints").is_none());
    asked["requests"][0]["body"] = json!({"base64": "?"});
    let refusal = Serving::start().ask(&asked.to_string());
    assert!(refusal["error"].as_str().expect("text").contains("base64"), "{refusal}");
}

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

#[test]
fn serving_ends_at_a_signal_while_nothing_is_asked() {
    let server = Server::answering(HELLO);
    let mut serving = Serving::start();
    serving.ask(&order(&server.url(), 1, json!({})).to_string());
    let pid = rustix::process::Pid::from_child(&serving.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("a process");
    assert_eq!(serving.child.wait().expect("an end").code(), Some(0));
}

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
    let output = output(&[&run[..], &["--fail-on", "failures>1", &server.url()]].concat());
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("2 timeout") && told.contains("failures>1 is true: it is 2"), "{told}");
}

#[test]
fn exit_codes() {
    let server = Server::answering(HELLO);
    let url = server.url();
    let slow = ["run", "-n", "5", "-c", "1", "--think", "5ms", "-q", &url];
    assert_eq!(output(&slow).status.code(), Some(0));
    let limited = output(&[&slow[..], &["--fail-on", "p99<1h"]].concat());
    assert_eq!(limited.status.code(), Some(1));
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
    for (limit, code) in [(None, 1), (Some("failures>5"), 0), (Some("failures>4"), 1)] {
        let limits: Vec<&str> = limit.into_iter().flat_map(|limit| ["--fail-on", limit]).collect();
        let output = output(&[&run[..], &limits].concat());
        assert_eq!(output.status.code(), Some(code), "{limit:?}: {}", stderr(&output));
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    for (args, wanted) in [
        (&["-r", "5", "--think", "1s", "http://127.0.0.1/"][..], "doesn't wait for answers"),
        (&["-r", "5", "--stage", "1s:5", "http://127.0.0.1/"], "cannot be used with"),
        (&["--requests-per-conn", "5", "http://127.0.0.1/"], "--conn-rate"),
        (&["http://192.0.2.1/"], "--allow-remote"),
        (&[], "<URLS>"),
        (&["-c", "0", "http://127.0.0.1/"], "--connections"),
        (&["--rate", "-5", "http://127.0.0.1/"], "above 0"),
        (&["--source", "::1", "http://127.0.0.1/"], "same kind"),
        // Before anything is measured, which would be lost.
        (&["--csv", "/dev/null/x", "http://127.0.0.1/"], "--csv /dev/null/x: "),
        (&["-c", "100000000", "http://127.0.0.1/"], "open files"),
        (&["--fail-on", "p98>1s", "http://127.0.0.1/"], "p99.9"),
        (&["--poisson", "http://127.0.0.1/"], "--rate"),
        (&["--kernel-times", "http+unix://%2Ftmp%2Fx/"], "Unix sockets; leave it out"),
    ] {
        let output = output(&[&["run"][..], args].concat());
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(wanted), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn files_are_written_and_read() {
    let server = Server::answering(HELLO);
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (csv, hdr, requests) = (path("o.csv"), path("o.hdr"), path("requests.jsonl"));
    std::fs::write(&requests, format!("{{\"url\": \"{}\"}}\n", server.url())).expect("a file");
    let args =
        ["run", "-n", "20", "-c", "1", "--csv", &csv, "--hdr", &hdr, "--request-file", &requests];
    let told = output(&args);
    assert!(String::from_utf8_lossy(&told.stdout).contains("20 completed"), "{}", stderr(&told));
    let csv = std::fs::read_to_string(csv).expect("a file");
    assert_eq!(csv.lines().count(), 2);
    let columns = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|line| columns(line) == columns(csv.lines().next().expect("one"))));
    assert!(std::fs::read_to_string(hdr).expect("a file").contains("Total count =           20"));
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

#[test]
fn the_help_names_unit_and_default_of_every_flag() {
    let text = String::from_utf8(output(&["run", "--help"]).stdout).expect("text");
    let flags = text.split("\n  -").skip(1).chain(text.split("\n      --").skip(1));
    let mut seen = 0;
    for flag in flags.filter(|flag| !flag.contains("Print help")) {
        let flag = flag.split("\n\n").next().unwrap_or_default();
        let words = flag.split_whitespace().collect::<Vec<_>>().join(" ");
        let first = flag.lines().next().unwrap_or_default();
        assert!(words.contains("[default: "), "{first} has no default");
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
    assert!(text.contains("Examples:") && text.contains("Exit codes:"));
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
    assert!(client["still_windows"].as_u64() >= Some(6), "{result:#}");
    assert!(client["stood_still_s"].as_f64() >= Some(0.55), "{result:#}");
    let rows = result["windows"].as_array().expect("a list");
    let kept: Vec<&Value> = rows.iter().filter(|row| row["stood_still"] == false).collect();
    let sum = |name: &str| kept.iter().filter_map(|row| row[name].as_f64()).sum::<f64>();
    let rate = result["rate_rps"].as_f64().expect("a number");
    assert!((sum("completed") / sum("length_s") / rate - 1.0).abs() < 0.001, "{result:#}");
}

#[test]
fn values_without_sense_are_refused_by_the_name_of_their_flag() {
    for (flag, value) in [
        ("--timeout", "1e18"),
        // Histograms end at an hour.
        ("--timeout", "2h"),
        ("--cpus", "0,0"),
        ("--duration", "1e9"),
        ("--window", "1ms"),
        ("--think", "1e9"),
        ("--rate", "1e12"),
        ("--stage", "10s:1e12"),
        ("--zipf", "11"),
        ("--warm-up", "inf"),
        ("--expect-status", "9999"),
        ("--expect-sha256", "00"),
        ("--connections", "5000000000"),
    ] {
        let output = output(&["run", flag, value, "http://127.0.0.1/"]);
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(stderr(&output).contains(flag), "{flag}: {}", stderr(&output));
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

#[test]
fn one_request_is_shown_whole() {
    let server = Server::answering(HELLO);
    let shown = output(&["run", "--once", "-u", "me:secret", "--compressed", &server.url()]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert_eq!(shown.status.code(), Some(0), "{text}{}", stderr(&shown));
    for line in [
        "> GET / HTTP/1.1\n",
        "> Authorization: Basic bWU6c2VjcmV0\n",
        "> Accept-Encoding: gzip, deflate, br, zstd\n",
        "< Content-Length: 13\n",
        "\nHello, World!\n",
        "\nvalid\n",
    ] {
        assert!(text.contains(line), "{line:?} in {text}");
    }
    let shown = output(&["run", "--once", "--expect-bytes", "5", &server.url()]);
    assert_eq!(shown.status.code(), Some(1));
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("not valid: ") && text.contains("instead of 5"), "{text}");
}

#[test]
fn one_request_that_gets_no_whole_response_says_why() {
    for (bytes, why) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHe"[..], "closed the connection"),
        (b"SSH-2.0-x\r\n\r\n", "status line"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "more bytes"),
    ] {
        let server = Server::start(move |mut client| {
            client.request();
            client.write(bytes);
        });
        let shown = output(&["run", "--once", &server.url()]);
        let text = String::from_utf8_lossy(&shown.stdout);
        assert_eq!(shown.status.code(), Some(1), "{text}");
        assert!(text.contains("> GET / HTTP/1.1\n") && text.contains(why), "{text}");
    }
    let refused = output(&["run", "--once", "http://127.0.0.1:9/"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn redirects_are_named_with_their_target() {
    let server = Server::answering(
        "HTTP/1.1 302 Found\r\nLOCATION: /sign-in?next=%2F\r\nContent-Length: 0\r\n\r\n",
    );
    let shown = output(&["run", "-n", "3", "-c", "1", &server.url()]);
    let table = String::from_utf8_lossy(&shown.stdout);
    assert!(table.contains("it redirects to /sign-in?next=%2F"), "{table}");
}

#[test]
fn connections_go_where_they_are_told_to() {
    let server = Server::start(|mut client| {
        let asked = client.request().unwrap_or_default();
        let status = if asked.contains("\r\nHost: shop.example\r\n") { "200 OK" } else { "404 No" };
        client.write(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n").as_bytes());
    });
    let rule = format!("shop.example:80:{}", server.address);
    let shown = output(&["run", "--once", "--connect-to", &rule, "http://shop.example/"]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let port = server.address.port();
    let (rule, url) =
        (format!("shop.example:{port}:127.0.0.1"), format!("http://shop.example:{port}/"));
    let host = "Host: shop.example";
    let shown = output(&["run", "--once", "--resolve", &rule, "-4", "-H", host, &url]);
    assert_eq!(shown.status.code(), Some(0), "{}", stderr(&shown));
    let refused =
        output(&["run", "--once", "--resolve", "a.example:80:192.0.2.1", "http://a.example/"]);
    assert!(stderr(&refused).contains("not on this machine"), "{}", stderr(&refused));
    let refused = output(&["run", "--once", "-6", &server.url()]);
    assert!(stderr(&refused).contains("no IPv6 address"), "{}", stderr(&refused));
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
    for (limit, code) in [("failures>6%", 0), ("failures>4%", 1)] {
        let ended = output(&["run", "-n", "100", "-c", "1", "--fail-on", limit, &server.url()]);
        assert_eq!(ended.status.code(), Some(code), "{limit}: {}", stderr(&ended));
    }
}
