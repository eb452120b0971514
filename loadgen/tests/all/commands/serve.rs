//! `loadgen serve`: orders in, results out.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Value, json};

use super::loadgen;
use crate::support::{HELLO, Server, order};

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
    assert_eq!(often["latency_us"]["count"], often["completed"]);
    let plain = crate::support::run(&order(&server.url(), 3, json!({})));
    assert!(plain.get("endpoints").is_none());
    asked["requests"][0]["body"] = json!({"base64": "?"});
    let refusal = Serving::start().ask(&asked.to_string());
    assert!(refusal["error"].as_str().expect("text").contains("base64"), "{refusal}");
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

/// Whoever gave the order was killed.
#[test]
fn it_ends_within_a_slot_whose_answer_nobody_can_read() {
    let server = Server::answering(HELLO);
    let Serving { mut child, input, output } = Serving::start();
    let order = order(&server.url(), 1, json!({"count": null, "duration_s": 600.0}));
    let mut input = input.expect("open");
    input.write_all(format!("{order}\n").as_bytes()).expect("listening");
    drop(output);
    assert_eq!(child.wait().expect("an end").code(), Some(1));
}
