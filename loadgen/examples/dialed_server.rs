//! A server of dialed cost, so that the true ratio of two of them is known.
//!
//! Each request costs exactly `--cost-us` of CPU time: before it answers, a worker spins until its
//! thread's CPU clock has advanced by that since the request before. Network, parsing and waking up
//! lie inside the dial, so n requests cost n times the dial as long as the dial is the larger one.
//! Of two such servers that are saturated, rate and CPU time per request have the ratio of the
//! dials. `--sleep-ms` makes slow pages: each request rests so long before it is worked on.
//! `--slow-start` makes the first requests dearer, fading with `--slow-start-s`.
//!
//! `--service-us` makes each worker a queue whose response times can be computed: one request after
//! the other, each served so long by the clock, all the same or (`--service exponential`)
//! exponentially distributed. Such requests cost next to nothing, so give them `--cost-us 0`. With
//! `--collapse-rps` a worker to which more come (in a tenth of a second) serves ten times as slowly
//! from then on, or until `--recover-s` after the last one that was too much: then it answers all
//! that waits at once. With `--shed-rps` it refuses what is more than that, at once and by a 503.
//! With `--stall-every-s` all workers stand still for `--stall-ms` at the end of each such period,
//! counted from the start. `--leak-bytes` keeps so much memory for each request, for ever, and
//! `--leak-bytes-per-s` so much in each second, whatever is asked. With `--dear-times` each start
//! draws, with the chance `--dear-share`, whether all its requests cost that many times as much.
//! One request at a time per connection, without a body. Scripts in `bench/` use it.

use std::collections::{HashMap, VecDeque};
use std::error::Error;
use std::io::{self, Read, Write};
use std::mem;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{ClockId, Timespec, clock_gettime};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
const REFUSAL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
const NS_PER_S: f64 = 1e9;
/// Over which a worker sees how many requests come in.
const SEEN_NS: f64 = 1e8;
/// How often memory is taken that goes by time: often enough to look steady.
const LEAK_EVERY: Duration = Duration::from_millis(100);
/// With the 16 bytes that malloc puts before them they fill whole pages: a page more for each block
/// would make the leak steeper than it is said to be.
const LEAK_BLOCK_BYTES: usize = (1 << 20) - 16;

#[derive(Parser, Clone, Copy)]
#[command(about = "A server whose requests cost a known CPU time")]
struct Options {
    /// Where it listens.
    #[arg(long)]
    listen: SocketAddr,
    /// CPU time of each request, in microseconds.
    #[arg(long, value_parser = not_negative)]
    cost_us: f64,
    /// Each request rests so many milliseconds before it is worked on.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    sleep_ms: f64,
    /// Threads that work on requests; connections are dealt out to them in turn.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    workers: u16,
    /// Each worker serves one request at a time, for so many microseconds by the clock.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    service_us: f64,
    /// How the times of service are distributed.
    #[arg(long, value_enum, default_value_t = Service::Fixed)]
    service: Service,
    /// Requests per second, in a tenth of it, that a worker survives; none collapses at 0.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    collapse_rps: f64,
    /// A collapsed worker is as before so many seconds after the last request that was too much;
    /// never at 0.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    recover_s: f64,
    /// Requests per second, in a tenth of it, that a worker takes; it refuses the rest. 0 takes all.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    shed_rps: f64,
    /// At the start requests cost this share more; it fades exponentially.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    slow_start: f64,
    /// Seconds in which the slow start fades to 37 %.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    slow_start_s: f64,
    /// Milliseconds for which all workers stand still at the end of each period.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    stall_ms: f64,
    /// Seconds from one stall to the next; none at 0.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    stall_every_s: f64,
    /// Bytes of memory that each request takes and never gives back.
    #[arg(long, default_value_t = 0)]
    leak_bytes: usize,
    /// Bytes of memory that are taken in each second and never given back, whatever is asked.
    #[arg(long, default_value_t = 0.0, value_parser = not_negative)]
    leak_bytes_per_s: f64,
    /// Requests of a dear start cost so many times as much.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    dear_times: f64,
    /// The share of starts that are dear.
    #[arg(long, default_value_t = 0.5, value_parser = not_negative)]
    dear_share: f64,
}

#[derive(ValueEnum, Clone, Copy, PartialEq)]
enum Service {
    Fixed,
    Exponential,
}

fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..f64::INFINITY).contains(&number) => Ok(number),
        _ => Err("not a number from 0".into()),
    }
}

fn clock_ns(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 * NS_PER_S + now.tv_nsec as f64
}

/// How many requests came per second in the last tenth of one; forgets those before.
fn recent_rps(came_ns: &mut VecDeque<f64>, now_ns: f64) -> f64 {
    came_ns.drain(..came_ns.partition_point(|each_ns| *each_ns < now_ns - SEEN_NS));
    came_ns.len() as f64 * NS_PER_S / SEEN_NS
}

struct Connection {
    socket: TcpStream,
    head: Vec<u8>,
}

/// A worker's connections; the accepting thread adds to them.
struct Desk {
    epoll: OwnedFd,
    connections: Mutex<HashMap<u64, Connection>>,
}

impl Desk {
    fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, connections: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, name: u64, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let mut connections = self.open();
        epoll::add(&self.epoll, &socket, EventData::new_u64(name), EventFlags::IN)?;
        connections.insert(name, Connection { socket, head: Vec::new() });
        Ok(())
    }

    /// Reads what has come; says whether a request is complete.
    fn read(&self, name: u64) -> bool {
        let mut connections = self.open();
        let Some(connection) = connections.get_mut(&name) else { return false };
        let mut bytes = [0; 4096];
        match connection.socket.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Ok(0) | Err(_) => {
                connections.remove(&name);
                false
            }
            Ok(got) => {
                connection.head.extend_from_slice(&bytes[..got]);
                let complete = connection.head.ends_with(END_OF_HEAD);
                if complete {
                    connection.head.clear();
                }
                complete
            }
        }
    }

    fn answer(&self, name: u64, bytes: &[u8]) {
        let mut connections = self.open();
        if let Some(connection) = connections.get_mut(&name)
            && connection.socket.write_all(bytes).is_err()
        {
            connections.remove(&name);
        }
    }
}

struct Worker {
    options: Options,
    desk: Arc<Desk>,
    /// Requests in the order in which they came, and when they may be worked on.
    resting: VecDeque<(f64, u64)>,
    /// What the thread's CPU clock shows when the current request is paid for.
    paid_ns: f64,
    began_ns: f64,
    /// When the last of the requests that came will have been served.
    served_ns: f64,
    /// When the requests of the last tenth of a second came, if that matters.
    arrivals: VecDeque<f64>,
    /// When the last request came that was too much, while the worker is collapsed.
    collapsed_ns: Option<f64>,
    /// When the requests of the last tenth of a second came that it took.
    taken: VecDeque<f64>,
    leaked: Vec<Vec<u8>>,
}

impl Worker {
    fn new(options: Options, desk: Arc<Desk>) -> Self {
        Self {
            options,
            desk,
            resting: VecDeque::new(),
            paid_ns: clock_ns(ClockId::ThreadCPUTime),
            began_ns: clock_ns(ClockId::Monotonic),
            served_ns: 0.0,
            arrivals: VecDeque::new(),
            collapsed_ns: None,
            taken: VecDeque::new(),
            leaked: Vec::new(),
        }
    }

    fn serve(&mut self) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(1024);
        loop {
            let rest = self.rest_of_next();
            let room = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.desk.epoll, room, rest.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
            self.stall();
            let now_ns = clock_ns(ClockId::Monotonic);
            self.recover(now_ns);
            for event in events.drain(..) {
                let name = event.data.u64();
                if self.desk.read(name) {
                    if self.sheds(now_ns) {
                        self.desk.answer(name, REFUSAL);
                    } else {
                        let ready_ns = self.ready_ns(now_ns);
                        self.resting.push_back((ready_ns, name));
                    }
                }
            }
            // One at a time, so that others begin to rest while it is worked on.
            if let Some(name) = self.next_ready() {
                self.pay();
                if self.options.leak_bytes > 0 {
                    self.leaked.push(vec![1; self.options.leak_bytes]);
                }
                self.desk.answer(name, ANSWER);
            }
        }
    }

    /// Stands still for what is left of a stall, if it is time for one.
    fn stall(&self) {
        let Options { stall_ms, stall_every_s, .. } = self.options;
        if stall_every_s == 0.0 {
            return;
        }
        let age_s = (clock_ns(ClockId::Monotonic) - self.began_ns) / NS_PER_S;
        let left_s = stall_every_s - age_s % stall_every_s;
        if left_s < stall_ms / 1e3 {
            thread::sleep(Duration::from_secs_f64(left_s));
        }
    }

    /// When a request that has just come may be worked on.
    fn ready_ns(&mut self, now_ns: f64) -> f64 {
        let Options { service_us, sleep_ms, service, .. } = self.options;
        if service_us == 0.0 {
            return now_ns + sleep_ms * 1e6;
        }
        self.see_collapse(now_ns);
        let times = match service {
            Service::Fixed => 1.0,
            Service::Exponential => -(1.0 - fastrand::f64()).ln(),
        };
        let slower = if self.collapsed_ns.is_some() { 10.0 } else { 1.0 };
        self.served_ns = self.served_ns.max(now_ns) + service_us * 1e3 * times * slower;
        self.served_ns
    }

    fn see_collapse(&mut self, now_ns: f64) {
        if self.options.collapse_rps == 0.0 {
            return;
        }
        self.arrivals.push_back(now_ns);
        if recent_rps(&mut self.arrivals, now_ns) > self.options.collapse_rps {
            self.collapsed_ns = Some(now_ns);
        }
    }

    /// Is as before once the last request that was too much came long enough ago.
    fn recover(&mut self, now_ns: f64) {
        let after_ns = self.options.recover_s * NS_PER_S;
        if after_ns == 0.0 || self.collapsed_ns.is_none_or(|came_ns| now_ns < came_ns + after_ns) {
            return;
        }
        self.collapsed_ns = None;
        self.served_ns = now_ns;
        for (ready_ns, _) in &mut self.resting {
            *ready_ns = now_ns;
        }
    }

    /// Whether it refuses a request that has just come: it took enough in the last tenth of a second.
    fn sheds(&mut self, now_ns: f64) -> bool {
        if self.options.shed_rps == 0.0 {
            return false;
        }
        let with_it_rps = recent_rps(&mut self.taken, now_ns) + NS_PER_S / SEEN_NS;
        let is_full = with_it_rps > self.options.shed_rps;
        if !is_full {
            self.taken.push_back(now_ns);
        }
        is_full
    }

    /// Gives how long there is nothing to do; for ever when nothing rests.
    fn rest_of_next(&self) -> Option<Timespec> {
        let (ready_ns, _) = self.resting.front()?;
        let rest_ns = (ready_ns - clock_ns(ClockId::Monotonic)).max(0.0);
        Some(Timespec { tv_sec: (rest_ns / NS_PER_S) as i64, tv_nsec: (rest_ns % NS_PER_S) as i64 })
    }

    fn next_ready(&mut self) -> Option<u64> {
        let (ready_ns, name) = *self.resting.front()?;
        if ready_ns > clock_ns(ClockId::Monotonic) {
            return None;
        }
        self.resting.pop_front();
        Some(name)
    }

    /// Spins until the request is paid for, what it has cost already included.
    fn pay(&mut self) {
        self.paid_ns += self.cost_ns();
        while clock_ns(ClockId::ThreadCPUTime) < self.paid_ns {}
    }

    fn cost_ns(&self) -> f64 {
        let Options { cost_us, slow_start, slow_start_s, .. } = self.options;
        let age_s = (clock_ns(ClockId::Monotonic) - self.began_ns) / NS_PER_S;
        let extra = if slow_start > 0.0 { slow_start * (-age_s / slow_start_s).exp() } else { 0.0 };
        cost_us * 1e3 * (1.0 + extra)
    }
}

/// Takes memory as time goes by, in blocks of which only what is taken is resident.
fn leak(bytes_per_s: f64) {
    let began = Instant::now();
    let (mut taken, mut block) = (0, Vec::new());
    loop {
        thread::sleep(LEAK_EVERY);
        let due = (bytes_per_s * began.elapsed().as_secs_f64()) as usize;
        while taken < due {
            if block.len() == block.capacity() {
                mem::forget(mem::replace(&mut block, Vec::with_capacity(LEAK_BLOCK_BYTES)));
            }
            let more = (due - taken).min(block.capacity() - block.len());
            block.resize(block.len() + more, 1_u8);
            taken += more;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut options = Options::parse();
    if fastrand::f64() < options.dear_share {
        options.cost_us *= options.dear_times;
    }
    if options.leak_bytes_per_s > 0.0 {
        thread::spawn(move || leak(options.leak_bytes_per_s));
    }
    let listener = TcpListener::bind(options.listen)?;
    let mut desks = Vec::new();
    for _ in 0..options.workers {
        let desk = Arc::new(Desk::new()?);
        desks.push(Arc::clone(&desk));
        thread::spawn(move || {
            if let Err(error) = Worker::new(options, desk).serve() {
                eprintln!("dialed_server: {error}");
                std::process::exit(1);
            }
        });
    }
    for (name, desk) in (0..).zip(desks.iter().cycle()) {
        let (socket, _) = listener.accept()?;
        desk.take(name, socket)?;
    }
    Ok(())
}
