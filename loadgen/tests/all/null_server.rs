//! The null server as clients see it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(body_bytes: usize) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["null-server", "--body", &body_bytes.to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("says where it listens");
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/').to_owned();
        Server { process, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("listens");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("can be set");
        stream
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn answer(stream: &mut TcpStream, body_bytes: usize) {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {body_bytes}\r\n\r\n"
    );
    let mut found = vec![0; head.len() + body_bytes];
    stream.read_exact(&mut found).expect("a whole answer");
    assert_eq!(&found[..head.len()], head.as_bytes());
    assert!(found[head.len()..].iter().all(|&byte| byte == b'0'));
}

#[test]
fn answers_of_any_length_come_whole_and_connections_stay() {
    for body_bytes in [0, 100, 20_000, 5_000_000] {
        let server = Server::start(body_bytes);
        let mut stream = server.connect();
        for _ in 0..3 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
            answer(&mut stream, body_bytes);
        }
    }
}

#[test]
fn a_request_in_pieces_is_one_request() {
    let server = Server::start(10);
    let mut stream = server.connect();
    for piece in ["GET / HT", "TP/1.1\r\nHost: x\r\n", "\r", "\n"] {
        stream.set_nodelay(true).expect("can be set");
        stream.write_all(piece.as_bytes()).expect("sent");
        std::thread::sleep(Duration::from_millis(5));
    }
    answer(&mut stream, 10);
}

#[test]
fn a_connection_is_closed_when_the_client_asks() {
    for body_bytes in [10, 100_000] {
        let server = Server::start(body_bytes);
        let mut stream = server.connect();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        answer(&mut stream, body_bytes);
        assert_eq!(stream.read(&mut [0]).expect("an orderly end"), 0);
    }
}

#[test]
fn requests_may_have_a_body_or_want_none() {
    let server = Server::start(10);
    let mut stream = server.connect();
    for length in [0, 5, 100_000] {
        let head = format!("POST / HTTP/1.1\r\nHost: x\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(&vec![b'x'; length]).expect("sent");
        answer(&mut stream, 10);
        stream.write_all(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        // The next answer follows the head at once.
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\n";
        let mut found = vec![0; head.len()];
        stream.read_exact(&mut found).expect("a head");
        assert_eq!(found, head.as_bytes());
    }
}

#[test]
fn a_relay_loses_a_share_of_packets() {
    for loss in ["5", "nan", "-0.1"] {
        let done = Command::new(env!("CARGO_BIN_EXE_loadgen"))
            .args(["relay", "nosuch0", "nosuch1", &format!("--loss={loss}")])
            .output()
            .expect("runs");
        assert!(String::from_utf8_lossy(&done.stderr).contains("from 0 to 1"), "{loss}");
    }
}

#[test]
fn addresses_that_others_can_reach_need_a_flag() {
    let done = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["null-server", "--listen", "0.0.0.0:0"])
        .output()
        .expect("runs");
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("--allow-remote"));
}

#[test]
fn a_relay_between_nothing_says_so() {
    let done = Command::new(env!("CARGO_BIN_EXE_loadgen"))
        .args(["relay", "nosuch0", "nosuch1"])
        .output()
        .expect("runs");
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).contains("nosuch0"));
}
