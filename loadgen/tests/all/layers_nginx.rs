//! TLS and HTTP/2 with a real nginx, and the program's results held against their schema.

use std::process::Command;

use crate::layers::nginx::{LARGE_BYTES, Nginx, PATIENCE, large, sha256};
use crate::support::{engine, expect, number, order, run, run_on};
use serde_json::{Value, json};

fn more(nginx: &Nginx, load: Value) -> Value {
    let mut more = json!({"load": load});
    more["load"]["tls"] = json!({"ca_file": nginx.authority.file()});
    more
}

#[test]
fn nginx_answers_over_every_layer() {
    let nginx = Nginx::start();
    let h1 = json!({"connections": 4});
    let h2 = json!({"connections": 2, "streams": 8, "protocol": "http2"});
    let clear = json!({"load": h2.clone()});
    let mut engine = engine(2);
    for (url, more, opened) in [
        (nginx.tls("/hello.txt"), more(&nginx, h1.clone()), 4),
        (nginx.http2("/hello.txt"), more(&nginx, h2.clone()), 2),
        (nginx.clear("/hello.txt"), clear.clone(), 2),
    ] {
        let mut order = order(&url, 500, more);
        order["requests"][0]["expect"] =
            json!({"body_bytes": 13, "body_sha256": sha256(b"Hello, World!")});
        let result = run_on(&mut engine, &order);
        expect(&result, &[("/requests/completed", 500), ("/connections/opened", opened)]);
        expect(&result, &[("/bytes/body", 6500)]);
    }
    // A body larger than every flow control window, read and checked in full at first.
    let expected = json!({"body_bytes": LARGE_BYTES, "body_sha256": sha256(&large())});
    for (url, more) in [
        (nginx.tls("/large.bin"), more(&nginx, h1.clone())),
        (nginx.http2("/large.bin"), more(&nginx, h2.clone())),
        (nginx.clear("/large.bin"), clear),
    ] {
        let mut order = order(&url, 40, more);
        order["requests"][0]["expect"] = expected.clone();
        let result = run_on(&mut engine, &order);
        let bytes = 40 * LARGE_BYTES as u64;
        expect(&result, &[("/requests/completed", 40), ("/bytes/body", bytes)]);
    }
    // A request that is larger than the window the server grants at first, and than what a socket
    // takes.
    for (url, load) in [(nginx.http2("/sink"), &h2), (nginx.tls("/sink"), &h1)] {
        let mut post = order(&url, 20, more(&nginx, load.clone()));
        post["requests"][0]["method"] = json!("POST");
        post["requests"][0]["body"] = json!("x".repeat(LARGE_BYTES));
        let result = run_on(&mut engine, &post);
        expect(&result, &[("/requests/completed", 20), ("/by_status/204", 20)]);
    }
    let mut head = order(&nginx.http2("/large.bin"), 20, more(&nginx, h2));
    head["requests"][0]["method"] = json!("HEAD");
    expect(&run_on(&mut engine, &head), &[("/requests/completed", 20), ("/bytes/body", 0)]);
}

#[test]
fn an_impatient_nginx_costs_no_request() {
    let nginx = Nginx::start();
    let count = 50 * u64::from(PATIENCE);
    let load = json!({"connections": 2, "streams": 5, "protocol": "http2"});
    let result = run(&order(&nginx.impatient("/hello.txt"), count, json!({"load": load})));
    expect(&result, &[("/requests/sent", count), ("/requests/completed", count)]);
    assert!(number(&result, "/connections/opened") >= 50, "{result:#}");
    assert!(number(&result, "/http2/go_aways") > 0, "{result:#}");
}

#[test]
fn the_program_takes_the_flags() {
    let nginx = Nginx::start();
    let ca = nginx.authority.file().display().to_string();
    let resumed = ["-n", "20", "-c", "1", "--keepalive", "never", "--tls-resumption", "on"];
    let streams = ["-r", "1000", "-d", "200ms", "-c", "2", "--http2", "--streams", "4"];
    for (flags, url) in [(&resumed[..], nginx.tls("/hello.txt")), (&streams, nginx.http2("/"))] {
        let output = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["run", "--json", "--cacert", &ca])
            .args(flags)
            .args(["--expect-status", "200", "--expect-status", "403", &url])
            .output()
            .expect("loadgen");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert!(number(&result, "/requests/completed") > 0, "{result:#}");
        assert_eq!(result["tls"]["verified"], true);
        let resumed = number(&result, "/tls/resumed_handshakes");
        // Of two connections the second may come late enough to resume the first one's session.
        let wanted = if flags.contains(&"never") { 19..=19 } else { 0..=1 };
        assert!(wanted.contains(&resumed), "{result:#}");
    }
}
