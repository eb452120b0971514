//! A server whose delays are known, so that the right percentiles can be computed.
//!
//! One thread answers each request when its schedule says so, from timers that are exact to some
//! microseconds. Freezes lie at fixed phases of the monotonic clock, which every process of the
//! machine reads alike. Standard output gets one JSON line with the port at the start, and one at
//! the end (when standard input closes) that says how late answers were written, and how many of
//! them later than `--late-ms` and `--late-share` allow.
//! One request at a time per connection, without a body, one short message of a WebSocket, or one call
//! of gRPC.
//! `bench/accuracy.py` uses it.

mod calls;
mod delays;
mod lateness;
mod pacing;
mod queue;
mod spoken;

use std::error::Error;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;

use clap::Parser;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, send};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use delays::{Allowance, Delays};
use lateness::{Lateness, figures, histogram};
use loadgen::clock::{now_ns, timespec};
use loadgen::engine::receive_time;
use pacing::arrived_late_ns;
use queue::{AT_ONCE, Due, Queue};
use spoken::Spoken;

const NO_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

const LISTENER: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
const PARENT: u64 = u64::MAX - 2;

#[derive(Parser)]
#[command(about = "A server with known delays; it ends when its standard input closes")]
struct Options {
    #[command(flatten)]
    allowance: Allowance,
    /// Requests are due at this even rate: tells how late they arrived
    #[arg(long)]
    due_per_s: Option<f64>,
    #[command(subcommand)]
    delays: Delays,
}

struct Connection {
    socket: TcpStream,
    spoken: Spoken,
    /// Sets this user of a place apart from earlier ones, whose answers may still be due.
    serial: u64,
}

struct Server {
    options: Options,
    listener: TcpListener,
    timer: OwnedFd,
    epoll: OwnedFd,
    connections: Vec<Option<Connection>>,
    free_places: Vec<usize>,
    accepted: u64,
    requests: u64,
    queue: Queue,
    lateness: Lateness,
    /// When requests arrived, if that is to be told.
    arrived_ns: Vec<u64>,
}

impl Server {
    fn new(options: Options) -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        receive_time::keep_times(&listener)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
        // Edge-triggered, so that a timer that has fired needs no read.
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        epoll::add(&epoll, std::io::stdin(), EventData::new_u64(PARENT), EventFlags::IN)
            .map_err(|error| format!("standard input must be a pipe or a terminal: {error}"))?;
        Ok(Self {
            options,
            listener,
            timer,
            epoll,
            connections: Vec::new(),
            free_places: Vec::new(),
            accepted: 0,
            requests: 0,
            queue: Queue::default(),
            lateness: Lateness::new()?,
            arrived_ns: Vec::new(),
        })
    }

    /// Serves until standard input closes.
    fn serve(&mut self) -> Result<(), Box<dyn Error>> {
        let mut events = Vec::with_capacity(1024);
        loop {
            let at_most = self.queue.is_due().then_some(&NO_TIME);
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), at_most)?;
            for event in events.drain(..) {
                match event.data.u64() {
                    PARENT => return Ok(()),
                    LISTENER => self.accept()?,
                    TIMER => {}
                    place => self.read(place as usize),
                }
            }
            self.answer_some();
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
        self.connections[place] =
            Some(Connection { socket, spoken: Spoken::new(), serial: self.accepted });
        Ok(())
    }

    fn read(&mut self, place: usize) {
        let Some(connection) = &mut self.connections[place] else { return };
        let mut bytes = [0; 4096];
        match receive_time::receive(&connection.socket, &mut bytes, RecvFlags::empty()) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok((0, _)) | Err(_) => {
                self.connections[place] = None;
                self.free_places.push(place);
            }
            Ok((got, arrived_ns)) => {
                let arrived_ns = arrived_ns.unwrap_or_else(now_ns);
                let Options { allowance, delays, due_per_s } = &self.options;
                let ended = connection.spoken.ended(&bytes[..got]);
                if let Some(switch) = connection.spoken.take_switch() {
                    let _ = send(&connection.socket, &switch, SendFlags::NOSIGNAL);
                }
                for _ in 0..ended {
                    let at_ns = delays.answer_at_ns(arrived_ns, self.requests);
                    self.queue.push(Due {
                        latest_ns: allowance.latest_ns(arrived_ns, at_ns),
                        at_ns,
                        count: self.requests,
                        place,
                        serial: connection.serial,
                    });
                    self.requests += 1;
                    if due_per_s.is_some() {
                        self.arrived_ns.push(arrived_ns);
                    }
                }
            }
        }
    }

    /// Writes answers that are due, but not more than `AT_ONCE`.
    fn answer_some(&mut self) {
        for _ in 0..AT_ONCE {
            let now_ns = now_ns();
            let Some(due) = self.queue.pop(now_ns) else { return };
            self.lateness.count(&due, now_ns);
            let user = self.connections[due.place].as_mut();
            if let Some(connection) = user.filter(|user| user.serial == due.serial) {
                // A client that has gone meanwhile is no fault; its socket is closed when read.
                let answer = connection.spoken.answer();
                let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                let _ = send(&connection.socket, &answer, flags);
            }
        }
    }

    /// Sets the alarm for the answer that is due next.
    fn set_timer(&self) -> Result<(), Errno> {
        let Some(at_ns) = self.queue.next_at_ns() else { return Ok(()) };
        let setting = Itimerspec { it_interval: NO_TIME, it_value: timespec(at_ns) };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &setting)?;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::new(Options::parse())?;
    println!("{}", serde_json::json!({"port": server.listener.local_addr()?.port()}));
    server.serve()?;
    let mut told = server.lateness.told(server.requests);
    if let Some(due_per_s) = server.options.due_per_s {
        let mut arrived_late_us = histogram()?;
        for late_ns in arrived_late_ns(server.arrived_ns, due_per_s) {
            arrived_late_us.saturating_record(late_ns / 1000);
        }
        told["arrived_late_us"] = figures(&arrived_late_us);
    }
    println!("{told}");
    Ok(())
}
