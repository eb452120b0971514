//! The floor: the least that one client thread pays for an HTTP request on an epoll loop.
//!
//! It learns the length of the answer from the first one and then only counts bytes: one `recv`
//! and one `send` per small answer, no parsing, no times, no checks. `bench/peers.py` holds
//! loadgen against it. `--drop` leaves the bytes in the kernel (`MSG_TRUNC`), as loadgen does
//! with large bodies; `--new-connections` opens one for each request; `--rate` sends each request
//! when it is due, as an open loop does, or together with others up to `--budget-us` later; with
//! `--message` requests and answers are messages of a WebSocket. In an open loop
//! it also counts its wake-ups and keeps how late it sent, so that it is compared at its exactness.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::time::{Duration, Instant};

use clap::Parser;
use loadgen::websocket::frame::{Kind, masked};
use loadgen::websocket::handshake;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::thread::{nanosleep, set_current_timer_slack};
use serde_json::json;

const MASK_BYTES: usize = 4;
const READ_BYTES: usize = 64 * 1024;
const EVENTS: usize = 256;
const LOOK_AT_CLOCK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

#[derive(Parser)]
#[command(about = "A bare epoll loop without HTTP: the least that a request can cost")]
struct Options {
    /// Address of the server
    address: SocketAddr,
    /// Path to ask for
    path: String,
    /// Connections, each with one request in flight
    #[arg(short, long, default_value_t = 64)]
    connections: usize,
    /// Seconds of load
    #[arg(short, long, default_value_t = 1.0)]
    duration: f64,
    /// Drop answers in the kernel instead of copying them
    #[arg(long)]
    drop: bool,
    /// Open a new connection for each request
    #[arg(long, conflicts_with = "rate")]
    new_connections: bool,
    /// Send this over WebSocket, a short message that comes back
    #[arg(long, conflicts_with_all = ["drop", "new_connections"])]
    message: Option<String>,
    /// Requests per second of an open loop at a constant rate
    #[arg(long)]
    rate: Option<f64>,
    /// Microseconds that requests of an open loop may be sent later, together with others
    #[arg(long, default_value_t = 0, requires = "rate")]
    budget_us: u64,
}

struct Connection {
    socket: TcpStream,
    left_bytes: usize,
}

/// What a connection has after its socket was read.
enum Progress {
    Waiting,
    Answered,
}

struct Client {
    address: SocketAddr,
    /// What switches a new connection to WebSocket.
    handshake: Option<Vec<u8>>,
    request: Vec<u8>,
    answer_bytes: usize,
    flags: RecvFlags,
    buffer: Vec<u8>,
    epoll: std::os::fd::OwnedFd,
}

impl Client {
    fn new(options: &Options) -> Result<Self, Box<dyn Error>> {
        if let Some(message) = &options.message {
            return Client::of_messages(options, message);
        }
        let wish = if options.new_connections { "close" } else { "keep-alive" };
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: {wish}\r\n\r\n",
            options.path, options.address
        )
        .into_bytes();
        let answer_bytes = learn_answer_bytes(options.address, &request)?;
        let (flags, buffer_bytes) = if options.drop {
            (RecvFlags::DONTWAIT | RecvFlags::TRUNC, answer_bytes)
        } else {
            (RecvFlags::DONTWAIT, READ_BYTES)
        };
        Ok(Self {
            address: options.address,
            handshake: None,
            request,
            answer_bytes,
            flags,
            buffer: vec![0; buffer_bytes],
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// A server sends back what it got, without the four bytes of the mask.
    fn of_messages(options: &Options, message: &str) -> Result<Self, Box<dyn Error>> {
        let head = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\n",
            options.path, options.address
        );
        let request = masked(Kind::Text, message.as_bytes(), handshake::mask());
        Ok(Self {
            address: options.address,
            handshake: Some(handshake::request(&head).0),
            answer_bytes: request.len() - MASK_BYTES,
            request,
            flags: RecvFlags::DONTWAIT,
            buffer: vec![0; READ_BYTES],
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
        })
    }

    /// Opens a connection. On the loopback interface `connect` is over when it returns, so that
    /// nothing needs to wait for it.
    fn open(&self, index: usize) -> Result<Connection, Box<dyn Error>> {
        let mut socket = TcpStream::connect(self.address)?;
        if let Some(handshake) = &self.handshake {
            socket.write_all(handshake)?;
            read_head(&mut socket)?;
        }
        let edges = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&self.epoll, &socket, epoll::EventData::new_u64(index as u64), edges)?;
        Ok(Connection { socket, left_bytes: 0 })
    }

    fn wait(&self, events: &mut Vec<epoll::Event>, timeout: Timespec) -> Result<(), Errno> {
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&timeout))?;
        Ok(())
    }

    fn ask(&self, connection: &mut Connection) -> Result<(), Box<dyn Error>> {
        let sent = send(&connection.socket, &self.request, SendFlags::NOSIGNAL)?;
        if sent < self.request.len() {
            return Err("the kernel took only a part of a request".into());
        }
        connection.left_bytes = self.answer_bytes;
        Ok(())
    }

    fn read(&mut self, connection: &mut Connection) -> Result<Progress, Box<dyn Error>> {
        loop {
            let wanted = connection.left_bytes.min(self.buffer.len());
            let got = match recv(&connection.socket, &mut self.buffer[..wanted], self.flags) {
                Ok((_, 0)) => return Err("the server closed a connection".into()),
                Ok((_, got)) => got,
                Err(Errno::AGAIN) => return Ok(Progress::Waiting),
                Err(error) => return Err(error.into()),
            };
            connection.left_bytes -= got;
            if connection.left_bytes == 0 {
                return Ok(Progress::Answered);
            }
            if got < wanted {
                return Ok(Progress::Waiting);
            }
        }
    }
}

/// Asks once and gives the length of head and body; the server must send a `Content-Length`.
fn learn_answer_bytes(address: SocketAddr, request: &[u8]) -> Result<usize, Box<dyn Error>> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    socket.write_all(request)?;
    let (seen, head_bytes) = read_head(&mut socket)?;
    let head = std::str::from_utf8(&seen[..head_bytes])?.to_ascii_lowercase();
    if !head.starts_with("http/1.1 200 ") {
        return Err(format!("the first answer is not a 200: {head}").into());
    }
    let body_bytes: usize = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .ok_or("the first answer has no Content-Length")?
        .trim()
        .parse()?;
    Ok(head_bytes + body_bytes)
}

/// Reads to the end of a head; with how long it is.
fn read_head(socket: &mut TcpStream) -> Result<(Vec<u8>, usize), Box<dyn Error>> {
    let mut seen = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let got = socket.read(&mut piece)?;
        if got == 0 {
            return Err("the server closed before the end of the first head".into());
        }
        seen.extend_from_slice(&piece[..got]);
        if let Some(at) = memchr::memmem::find(&seen, b"\r\n\r\n") {
            return Ok((seen, at + 4));
        }
    }
}

/// Each connection asks again as soon as it is answered; gives the number of answers.
fn closed_loop(
    client: &mut Client,
    connections: &mut [Connection],
    new_connections: bool,
    end: Instant,
) -> Result<u64, Box<dyn Error>> {
    let mut events = Vec::with_capacity(EVENTS);
    let mut completed = 0;
    for connection in &mut *connections {
        client.ask(connection)?;
    }
    while Instant::now() < end {
        client.wait(&mut events, LOOK_AT_CLOCK)?;
        for event in events.drain(..) {
            let index = event.data.u64() as usize;
            if let Progress::Waiting = client.read(&mut connections[index])? {
                continue;
            }
            completed += 1;
            if new_connections {
                connections[index] = client.open(index)?;
            }
            client.ask(&mut connections[index])?;
        }
    }
    Ok(completed)
}

/// What came of an open loop.
struct Paced {
    completed: u64,
    wake_ups: u64,
    delays_ns: Vec<u64>,
}

/// Free connections ask when it is time; with a budget the thread sleeps for that long, whatever
/// comes.
fn open_loop(
    client: &mut Client,
    connections: &mut [Connection],
    gap: Duration,
    budget: Duration,
    end: Instant,
) -> Result<Paced, Box<dyn Error>> {
    let mut events = Vec::with_capacity(EVENTS);
    let mut free = Vec::from_iter(0..connections.len());
    let mut paced = Paced { completed: 0, wake_ups: 0, delays_ns: Vec::new() };
    let mut due = Instant::now();
    let mut woke = due;
    while due < end {
        let wait = due.max(woke + budget).saturating_duration_since(Instant::now());
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.subsec_nanos().into() };
        paced.wake_ups += u64::from(wait.tv_nsec > 0);
        if budget.is_zero() {
            client.wait(&mut events, wait)?;
        } else {
            let _ = nanosleep(&wait);
            client.wait(&mut events, Timespec { tv_sec: 0, tv_nsec: 0 })?;
        }
        woke = Instant::now();
        for event in events.drain(..) {
            let index = event.data.u64() as usize;
            if let Progress::Answered = client.read(&mut connections[index])? {
                paced.completed += 1;
                free.push(index);
            }
        }
        while let Some(delay) = Instant::now().checked_duration_since(due)
            && let Some(index) = free.pop()
        {
            paced.delays_ns.push(delay.as_nanos() as u64);
            client.ask(&mut connections[index])?;
            due += gap;
        }
    }
    Ok(paced)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let mut client = Client::new(&options)?;
    // As in loadgen: the kernel may not put off the end of a wait.
    set_current_timer_slack(Some(NonZeroU64::MIN))?;
    let began = Instant::now();
    let end = began + Duration::from_secs_f64(options.duration);
    let mut connections =
        (0..options.connections).map(|index| client.open(index)).collect::<Result<Vec<_>, _>>()?;
    let mut told = match options.rate {
        Some(rate) => {
            let gap = Duration::from_secs_f64(1.0 / rate);
            let budget = Duration::from_micros(options.budget_us);
            let paced = open_loop(&mut client, &mut connections, gap, budget, end)?;
            let p99_us = percentile_ns(paced.delays_ns, 0.99) as f64 / 1e3;
            json!({"completed": paced.completed, "wake_ups": paced.wake_ups,
                   "send_delay_p99_us": p99_us})
        }
        None => {
            let new = options.new_connections;
            json!({"completed": closed_loop(&mut client, &mut connections, new, end)?})
        }
    };
    told["measured_s"] = began.elapsed().as_secs_f64().into();
    println!("{told}");
    Ok(())
}

fn percentile_ns(mut values: Vec<u64>, share: f64) -> u64 {
    values.sort_unstable();
    values.get((values.len() as f64 * share) as usize).copied().unwrap_or(0)
}
