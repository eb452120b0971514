//! Idle connections: what servers do with them stays out of the load's counts and times.

use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, HELLO, Server, engine, expect, number, order, run, run_on};

const IDLE: u64 = 10;
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nOK";

/// Runs a load of `/load` for a moment beside idle connections, which ask for `/idle` and are
/// then up to `script`; checks that the load knows nothing of it.
fn beside(script: impl Fn(Client) + Send + Sync + 'static) -> Value {
    let asked = Arc::new(AtomicU64::new(0));
    let count = asked.clone();
    let server = Server::start(move |mut client| {
        while let Some(request) = client.request() {
            if request.starts_with("GET /idle") {
                return script(client);
            }
            count.fetch_add(1, Ordering::Relaxed);
            client.write(HELLO);
        }
    });
    let requests = ["idle", "load"].map(|path| json!({"url": server.url() + path}));
    let load = json!({"idle_connections": IDLE, "timeout_s": 0.1, "think": {"mean_s": 0.001}});
    let more = json!({"requests": requests, "sequence": [1], "duration_s": 0.4, "count": null,
                      "load": load});
    let result = run(&order("", 1, more));
    let sent = asked.load(Ordering::Relaxed);
    let in_time = sent - number(&result, "/requests/unanswered");
    expect(
        &result,
        &[
            ("/requests/sent", sent),
            ("/requests/completed", in_time),
            ("/by_status/200", in_time),
            ("/latency_us/count", in_time),
            ("/connections/opened", 1),
            ("/keepalive/server_closed", 0),
        ],
    );
    assert!(in_time > 10, "{result:#}");
    result
}

fn has_samples(result: &Value, text: &str) {
    let samples = result["idle_connections"]["failure_samples"].as_array().expect("a list");
    let told = samples.iter().filter_map(Value::as_str).any(|sample| sample.contains(text));
    assert!(told, "{result:#}");
    assert_eq!(result["failure_samples"], json!([]));
}

#[test]
fn wrong_answers() {
    let result = beside(|mut client| {
        client.write(b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n");
        client.request();
    });
    expect(
        &result,
        &[
            ("/idle_connections/held", IDLE),
            ("/idle_connections/failed", IDLE),
            ("/idle_connections/server_closed", 0),
        ],
    );
    has_samples(&result, "status 500");
}

#[test]
fn no_answers() {
    let result = beside(|mut client| {
        client.request();
    });
    expect(&result, &[("/idle_connections/held", 0), ("/idle_connections/server_closed", 0)]);
    assert!(number(&result, "/idle_connections/failed") >= IDLE, "{result:#}");
    has_samples(&result, "no full answer");
}

#[test]
fn closed_without_an_answer() {
    let result = beside(drop);
    expect(&result, &[("/idle_connections/held", 0)]);
    let of = |path: &str| number(&result, path);
    let (failed, closed) = (of("/idle_connections/failed"), of("/idle_connections/server_closed"));
    // On a busy machine the server comes too late to some, which is another failure of theirs.
    let late = result["idle_connections"]["failure_samples"].to_string().contains("no full answer");
    assert!(closed == failed || (late && (IDLE..failed).contains(&closed)), "{result:#}");
    // They rest 1, 2, 4, 8 … 100 ms between tries: some 10 tries each.
    assert!((IDLE..20 * IDLE).contains(&failed), "{result:#}");
    has_samples(&result, "closed without an answer");
}

#[test]
fn closed_with_the_answer() {
    let result = beside(|mut client| client.write(LAST));
    expect(&result, &[("/idle_connections/held", 0), ("/idle_connections/failed", 0)]);
    let closed = number(&result, "/idle_connections/server_closed");
    assert!((IDLE..20 * IDLE).contains(&closed), "{result:#}");
}

#[test]
fn closed_after_a_while() {
    let result = beside(|mut client| {
        client.write(HELLO);
        std::thread::sleep(Duration::from_millis(100));
    });
    expect(&result, &[("/idle_connections/failed", 0)]);
    assert!(number(&result, "/idle_connections/server_closed") >= IDLE, "{result:#}");
}

#[test]
fn refused_connects_do_not_end_a_load_that_is_served() {
    let server = Server::answering(HELLO);
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("one").port();
    let urls = [format!("http://127.0.0.1:{port}/"), server.url()];
    let requests = urls.map(|url| json!({"url": url}));
    let load = json!({"idle_connections": 3, "timeout_s": 0.05, "think": {"mean_s": 0.005}});
    let more = json!({"requests": requests, "sequence": [1], "load": load});
    let result = run(&order("", 40, more));
    assert_eq!(result["ended_by"], "count");
    expect(&result, &[("/requests/completed", 40), ("/failures/connect", 0)]);
    assert!(number(&result, "/idle_connections/connect_failures") >= 3, "{result:#}");
    has_samples(&result, "connect to");
}

/// As Apache does on Linux: the kernel hands over only connections that have asked (or ended), and
/// the others fill its queue.
#[test]
fn servers_that_accept_who_has_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    defer_accept(&listener);
    let server = Server::listen(listener, |mut client| client.answer_all(HELLO));
    let mut engine = engine(1);
    let more = json!({"load": {"idle_connections": IDLE}});
    let result = run_on(&mut engine, &order(&server.url(), 20, more));
    let counts = [
        ("/requests/completed", 20),
        ("/idle_connections/held", IDLE),
        ("/idle_connections/failed", 0),
    ];
    expect(&result, &counts);
    assert_eq!(server.connections.load(Ordering::Relaxed) as u64, IDLE + 1);
}

fn defer_accept(listener: &TcpListener) {
    let seconds: libc::c_int = 30;
    // SAFETY: the option's value is one valid `c_int`.
    let outcome = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            (&raw const seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
}
