//! A server whose delays are known, so that the right percentiles can be computed.
//!
//! One thread answers each request when its schedule says so, from timers that are exact to some
//! microseconds. Freezes lie at fixed phases of the monotonic clock, which every process of the
//! machine reads alike. Standard output gets one JSON line with the port at the start, and one at
//! the end (when standard input closes) that says how late answers were written.
//! One request at a time per connection, without a body. `bench/accuracy.py` uses it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use clap::{Parser, Subcommand};
use hdrhistogram::Histogram;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
const NS_PER_MS: f64 = 1e6;
const NS_PER_S: u64 = 1_000_000_000;

/// Above this, lateness is no longer told apart.
const LATEST_US: u64 = 60_000_000;

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const PARENT: u64 = u64::MAX - 2;

#[derive(Parser)]
#[command(about = "A server with known delays; it ends when its standard input closes")]
struct Options {
    #[command(subcommand)]
    delays: Delays,
}

/// When a request that arrives at some time is answered.
#[derive(Subcommand)]
enum Delays {
    /// Each request takes equally long
    Constant {
        /// Milliseconds per request
        #[arg(long)]
        delay_ms: f64,
    },
    /// One request in N takes long, by order of arrival
    Bimodal {
        /// Milliseconds of most requests
        #[arg(long)]
        fast_ms: f64,
        /// Milliseconds of each N-th request
        #[arg(long)]
        slow_ms: f64,
        /// N
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        slow_every: u64,
    },
    /// Nothing is answered during a part of each period; what was due then is answered at its end
    Frozen {
        /// Milliseconds per request outside of freezes
        #[arg(long)]
        base_ms: f64,
        /// Milliseconds from the start of a period to the freeze
        #[arg(long)]
        freeze_at_ms: f64,
        /// Milliseconds that a freeze lasts
        #[arg(long)]
        freeze_ms: f64,
        /// Milliseconds from period to period, counted from zero of the monotonic clock
        #[arg(long)]
        period_ms: f64,
    },
}

fn ns(ms: f64) -> u64 {
    (ms * NS_PER_MS) as u64
}

impl Delays {
    /// When to answer the request number `count` (from 0) that arrived at `now_ns`.
    fn answer_at_ns(&self, now_ns: u64, count: u64) -> u64 {
        match *self {
            Self::Constant { delay_ms } => now_ns + ns(delay_ms),
            Self::Bimodal { slow_ms, slow_every, .. } if (count + 1).is_multiple_of(slow_every) => {
                now_ns + ns(slow_ms)
            }
            Self::Bimodal { fast_ms, .. } => now_ns + ns(fast_ms),
            Self::Frozen { base_ms, freeze_at_ms, freeze_ms, period_ms } => {
                let ready_ns = now_ns + ns(base_ms);
                let phase_ns = ready_ns % ns(period_ms);
                let (start_ns, end_ns) = (ns(freeze_at_ms), ns(freeze_at_ms + freeze_ms));
                if (start_ns..end_ns).contains(&phase_ns) {
                    ready_ns - phase_ns + end_ns
                } else {
                    ready_ns
                }
            }
        }
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * NS_PER_S + now.tv_nsec as u64
}

struct Connection {
    socket: TcpStream,
    /// How many bytes of the empty line that ends a head have been seen.
    end_seen: usize,
    /// Sets this user of a place apart from earlier ones, whose answers may still be due.
    serial: u64,
}

impl Connection {
    /// Counts the heads that end in these bytes.
    fn heads_ended(&mut self, bytes: &[u8]) -> u64 {
        const END: &[u8] = b"\r\n\r\n";
        let mut ended = 0;
        for &byte in bytes {
            self.end_seen = match byte {
                _ if byte == END[self.end_seen] => self.end_seen + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.end_seen == END.len() {
                self.end_seen = 0;
                ended += 1;
            }
        }
        ended
    }
}

/// An answer to be written: when, in which order of arrival, and to whom.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    count: u64,
    place: usize,
    serial: u64,
}

struct Server {
    delays: Delays,
    listener: TcpListener,
    timer: OwnedFd,
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    free_places: Vec<usize>,
    accepted: u64,
    requests: u64,
    queue: BinaryHeap<Reverse<Due>>,
    late_us: Histogram<u64>,
}

impl Server {
    fn new(delays: Delays) -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        // Edge-triggered, so that a timer that has fired needs no read.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        epoll::add(&epoll, std::io::stdin(), EventData::new_u64(PARENT), EventFlags::IN)
            .map_err(|error| format!("standard input must be a pipe or a terminal: {error}"))?;
        Ok(Self {
            delays,
            listener,
            timer,
            epoll,
            connections: Vec::new(),
            free_places: Vec::new(),
            accepted: 0,
            requests: 0,
            queue: BinaryHeap::new(),
            late_us: Histogram::new_with_bounds(1, LATEST_US, 3)?,
        })
    }

    /// Serves until standard input closes.
    fn serve(&mut self) -> Result<(), Box<dyn Error>> {
        let mut events = Vec::with_capacity(1024);
        loop {
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None)?;
            for event in events.drain(..) {
                match event.data.u64() {
                    PARENT => return Ok(()),
                    LISTENER => self.accept()?,
                    TIMER => {}
                    place => self.read(place as usize),
                }
            }
            self.answer_what_is_due();
            self.set_timer()?;
        }
    }

    fn accept(&mut self) -> Result<(), Box<dyn Error>> {
        let socket = match self.listener.accept() {
            Ok((socket, _)) => socket,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        epoll::add(&self.epoll, &socket, EventData::new_u64(place as u64), EventFlags::IN)?;
        self.accepted += 1;
        self.connections[place] = Some(Connection { socket, end_seen: 0, serial: self.accepted });
        Ok(())
    }

    fn read(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        let mut bytes = [0; 4096];
        match recv(&connection.socket, &mut bytes, RecvFlags::DONTWAIT) {
            Err(Errno::AGAIN) => {}
            Ok((_, 0)) | Err(_) => {
                self.connections[place] = None;
                self.free_places.push(place);
            }
            Ok((_, got)) => {
                let now_ns = now_ns();
                for _ in 0..connection.heads_ended(&bytes[..got]) {
                    self.queue.push(Reverse(Due {
                        at_ns: self.delays.answer_at_ns(now_ns, self.requests),
                        count: self.requests,
                        place,
                        serial: connection.serial,
                    }));
                    self.requests += 1;
                }
            }
        }
    }

    fn answer_what_is_due(&mut self) {
        while let Some(Reverse(due)) = self.queue.peek() {
            let now_ns = now_ns();
            if due.at_ns > now_ns {
                return;
            }
            self.late_us.saturating_record((now_ns - due.at_ns) / 1000);
            let user = self.connections[due.place].as_ref();
            if let Some(connection) = user.filter(|user| user.serial == due.serial) {
                // A client that has gone meanwhile is no fault; its socket is closed when read.
                let _ = send(&connection.socket, ANSWER, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            }
            self.queue.pop();
        }
    }

    fn set_timer(&self) -> Result<(), Errno> {
        let Some(Reverse(due)) = self.queue.peek() else { return Ok(()) };
        let at = Timespec {
            tv_sec: (due.at_ns / NS_PER_S) as i64,
            tv_nsec: (due.at_ns % NS_PER_S) as i64,
        };
        let once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let setting = Itimerspec { it_interval: once, it_value: at };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::new(Options::parse().delays)?;
    println!("{}", serde_json::json!({"port": server.listener.local_addr()?.port()}));
    server.serve()?;
    let late_us = &server.late_us;
    println!(
        "{}",
        serde_json::json!({
            "requests": server.requests,
            "late_us": {
                "p50": late_us.value_at_quantile(0.50),
                "p99": late_us.value_at_quantile(0.99),
                "max": late_us.max(),
            },
        })
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address"));
        Connection { socket: socket.expect("a connection"), end_seen: 0, serial: 1 }
    }

    #[test]
    fn heads_are_counted_however_they_are_cut() {
        let heads = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /\r HTTP/1.1\r\nHost: \r\r\n\r\n";
        for cut in 0..=heads.len() {
            let mut connection = connection();
            let (first, second) = heads.split_at(cut);
            assert_eq!(connection.heads_ended(first) + connection.heads_ended(second), 2, "{cut}");
        }
    }

    #[test]
    fn nothing_is_answered_in_a_freeze() {
        let frozen = Delays::Frozen {
            base_ms: 1.0,
            freeze_at_ms: 500.0,
            freeze_ms: 200.0,
            period_ms: 1000.0,
        };
        let at_ms = |now_ms: f64| frozen.answer_at_ns(ns(now_ms), 0) as f64 / NS_PER_MS;
        for (arrives, answered) in [
            (0.0, 1.0),
            (498.9, 499.9),
            (499.0, 700.0),
            (650.0, 700.0),
            (699.0, 700.0),
            (3600.0, 3700.0),
        ] {
            assert_eq!(at_ms(arrives), answered, "{arrives}");
        }
    }

    #[test]
    fn each_nth_is_slow() {
        let bimodal = Delays::Bimodal { fast_ms: 1.0, slow_ms: 50.0, slow_every: 3 };
        let delays: Vec<u64> = (0..6).map(|count| bimodal.answer_at_ns(7, count) - 7).collect();
        let (fast, slow) = (ns(1.0), ns(50.0));
        assert_eq!(delays, [fast, fast, slow, fast, fast, slow]);
    }
}
