//! A raw TCP server that does what a test says, and the engine run against it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use loadgen::calls::Calls;
use loadgen::engine::{Engine, Plan};
use loadgen::order::parse::parse;
use loadgen::output::result::SlotResult;
use serde_json::{Value, json};

pub const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!";

/// One connection as the server sees it.
pub struct Client<S = TcpStream> {
    pub stream: S,
    /// 0 for the first connection.
    pub number: usize,
}

impl<S: Read + Write> Client<S> {
    /// Reads one request without a body; `None` when the client closed.
    pub fn request(&mut self) -> Option<String> {
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"\r\n\r\n") {
            match self.stream.read(&mut byte) {
                Ok(1) => text.push(byte[0]),
                _ => return None,
            }
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Writes; the client may be gone, which is its right.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
    }

    /// Answers every request alike until the client closes.
    pub fn answer_all(&mut self, bytes: &[u8]) {
        while self.request().is_some() {
            self.write(bytes);
        }
    }
}

impl Client {
    /// Closes with a reset instead of an end.
    pub fn reset(self) {
        let none = Some(std::time::Duration::ZERO);
        rustix::net::sockopt::set_socket_linger(&self.stream, none).expect("linger");
    }
}

pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    pub peers: Arc<Mutex<Vec<SocketAddr>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    /// Serves each connection in a thread of its own.
    pub fn start(script: impl Fn(Client) + Send + Sync + 'static) -> Server {
        Server::listen(TcpListener::bind("127.0.0.1:0").expect("a port"), script)
    }

    pub fn listen(
        listener: TcpListener,
        script: impl Fn(Client) + Send + Sync + 'static,
    ) -> Server {
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let peers = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (count, seen, ended) = (connections.clone(), peers.clone(), stop.clone());
        let script = Arc::new(script);
        thread::spawn(move || {
            while let Ok((stream, peer)) = listener.accept() {
                if ended.load(Ordering::Relaxed) {
                    break;
                }
                stream.set_nodelay(true).expect("nodelay");
                seen.lock().expect("peers").push(peer);
                let number = count.fetch_add(1, Ordering::Relaxed);
                let script = script.clone();
                thread::spawn(move || script(Client { stream, number }));
            }
        });
        Server { address, connections, peers, stop }
    }

    /// Answers every request with the same bytes.
    pub fn answering(bytes: impl Into<Vec<u8>>) -> Server {
        let bytes = bytes.into();
        Server::start(move |mut client| client.answer_all(&bytes))
    }

    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener up, so that its port gets free.
        let _ = TcpStream::connect(self.address);
    }
}

/// An order for one URL: `count` requests over one connection, and whatever `more` changes.
pub fn order(url: &str, count: u64, more: Value) -> Value {
    let mut order = json!({
        "id": "test",
        "requests": [{"url": url}],
        "load": {"loop": "closed", "connections": 1, "timeout_s": 5.0},
        "count": count,
    });
    merge(&mut order, more);
    order
}

pub fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                match value {
                    Value::Null => drop(into.remove(&key)),
                    value => merge(into.entry(key).or_insert(Value::Null), value),
                }
            }
        }
        (into, from) => *into = from,
    }
}

pub fn engine(threads: usize) -> Engine {
    let interrupt = Arc::new(AtomicBool::new(false));
    Engine::start(None, threads, &interrupt).expect("threads")
}

/// Runs an order and checks what always holds.
pub fn run_on(engine: &mut Engine, order: &Value) -> Value {
    let mut order = parse(&order.to_string()).expect("a good order");
    Calls::prepare(&mut order, false).expect("good calls");
    run_plan(engine, Plan::new(order).expect("a plan"))
}

pub fn run_plan(engine: &mut Engine, plan: Plan) -> Value {
    let plan = Arc::new(plan);
    let measured = engine.run(&plan, &mut ()).expect("a result");
    let result = serde_json::to_value(SlotResult::new(&plan, &measured)).expect("JSON");
    let of = |path: &str| number(&result, path);
    let failures = result["failures"].as_object().expect("an object");
    let failed: u64 = failures.values().filter_map(Value::as_u64).sum();
    let failed_sent = failed - of("/failures/connect");
    let accounted = of("/requests/completed") + failed_sent + of("/requests/unanswered");
    assert_eq!(of("/requests/sent") + of("/requests/carried"), accounted, "{result}");
    let answered: u64 = result["by_status"]
        .as_object()
        .expect("an object")
        .values()
        .filter_map(Value::as_u64)
        .sum();
    let wrong = of("/failures/status") + of("/failures/body");
    assert_eq!(answered, of("/requests/completed") + wrong, "{result}");
    // A ramp-up moves the edges, and a machine under load makes windows in which we stood still.
    if result["ramp_up_s"] == 0.0 && of("/client/excluded_windows") == 0 {
        assert_eq!(of("/service_time_us/count"), of("/requests/completed"), "{result}");
    }
    result
}

pub fn run(order: &Value) -> Value {
    run_on(&mut engine(1), order)
}

pub fn number(result: &Value, path: &str) -> u64 {
    let value = result.pointer(path).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("{path} in {result}"))
}

/// Asserts counts, given as path and value.
pub fn expect(result: &Value, counts: &[(&str, u64)]) {
    for (path, wanted) in counts {
        assert_eq!(number(result, path), *wanted, "{path} in {result:#}");
    }
}
