//! The floor of gRPC: the least that one client thread pays for a unary call on an epoll loop.
//!
//! Every call is the same bytes but for its stream's number, and of what comes it looks only at the
//! heads of frames: a stream's end is an answer. It checks nothing and grants all at the beginning.
//! `bench/peers.py --cases grpc` holds loadgen against it.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use clap::Parser;
use rustix::event::{Timespec, epoll};
use serde_json::json;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty SETTINGS, and a WINDOW_UPDATE that makes the connection's window as large as can be.
const BEGIN: &[u8] = b"\0\0\0\x04\0\0\0\0\0\0\0\x04\x08\0\0\0\0\0\x7f\xff\0\0";
const SETTINGS_ACK: &[u8] = b"\0\0\0\x04\x01\0\0\0\0";
/// `HelloRequest { name: "world" }`, with the five bytes before it.
const MESSAGE: &[u8] = b"\0\0\0\0\x07\x0a\x05world";
const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
const READ_BYTES: usize = 64 * 1024;
const LOOK_AT_CLOCK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

#[derive(Parser)]
#[command(about = "A bare epoll loop of gRPC: the least that a call can cost")]
struct Options {
    /// Address of the server
    address: SocketAddr,
    /// Path of the method
    path: String,
    #[arg(short, long, default_value_t = 8)]
    connections: usize,
    /// Calls at a time on each connection
    #[arg(short, long, default_value_t = 10)]
    streams: usize,
    /// Seconds of load
    #[arg(short, long, default_value_t = 1.0)]
    duration: f64,
}

struct Connection {
    socket: TcpStream,
    next_stream: u32,
    came: Vec<u8>,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Connection, Box<dyn Error>> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.write_all(&[PREFACE, BEGIN].concat())?;
        Ok(Connection { socket, next_stream: 1, came: Vec::new() })
    }

    /// Adds a call's frames to what is to be sent.
    fn call(&mut self, block: &[u8], out: &mut Vec<u8>) {
        frame(HEADERS, END_HEADERS, self.next_stream, block, out);
        frame(DATA, END_STREAM, self.next_stream, MESSAGE, out);
        self.next_stream += 2;
    }

    /// Counts the answers that end in what was read, and adds what is to be sent.
    fn answered(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<usize, Box<dyn Error>> {
        self.came.extend_from_slice(bytes);
        let (mut at, mut answers) = (0, 0);
        while let Some([l0, l1, l2, kind, flags, ..]) = self.came.get(at..at + HEAD_BYTES) {
            let whole = HEAD_BYTES + u32::from_be_bytes([0, *l0, *l1, *l2]) as usize;
            if self.came.len() - at < whole {
                break;
            }
            match *kind {
                GOAWAY => return Err("the server ended a connection".into()),
                SETTINGS if flags & ACK == 0 => out.extend_from_slice(SETTINGS_ACK),
                DATA | HEADERS => answers += usize::from(flags & END_STREAM != 0),
                _ => {}
            }
            at += whole;
        }
        self.came.drain(..at);
        Ok(answers)
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}

/// The fields of a call, none of them in a table (RFC 7541 section 6.2.2).
fn block(options: &Options) -> Vec<u8> {
    let authority = options.address.to_string();
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &options.path),
        (":authority", &authority),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
    ];
    let mut block = Vec::new();
    for (name, value) in fields {
        // All are shorter than the 127 bytes that a length of one byte can say.
        block.extend_from_slice(&[0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let block = block(&options);
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(options.duration);
    let mut connections = Vec::new();
    let (mut buffer, mut out) = (vec![0; READ_BYTES], Vec::new());
    for number in 0..options.connections {
        let mut connection = Connection::open(options.address)?;
        (0..options.streams).for_each(|_| connection.call(&block, &mut out));
        connection.socket.write_all(&out)?;
        out.clear();
        let data = epoll::EventData::new_u64(number as u64);
        epoll::add(&epoll, &connection.socket, data, epoll::EventFlags::IN)?;
        connections.push(connection);
    }
    let mut events = Vec::with_capacity(256);
    let mut completed = 0;
    while Instant::now() < end {
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&LOOK_AT_CLOCK))?;
        for event in events.drain(..) {
            let connection = &mut connections[event.data.u64() as usize];
            let count = connection.socket.read(&mut buffer)?;
            if count == 0 {
                return Err("the server closed a connection".into());
            }
            let answers = connection.answered(&buffer[..count], &mut out)?;
            (0..answers).for_each(|_| connection.call(&block, &mut out));
            completed += answers;
            connection.socket.write_all(&out)?;
            out.clear();
        }
    }
    println!("{}", json!({"completed": completed, "measured_s": began.elapsed().as_secs_f64()}));
    Ok(())
}
