//! The server of known delays over HTTP/3: as `delay_server`, made from the other side of the
//! library that the engine's QUIC is. One thread answers each request when its schedule says so.
//!
//! Its certificate is one that nobody trusts: ask with `--tls-verify off`. `bench/accuracy.py` and
//! `bench/http3.py` use it.

#[path = "../delay_server/delays.rs"]
mod delays;
#[path = "../delay_server/lateness.rs"]
mod lateness;
#[path = "../delay_server/queue.rs"]
mod queue;
mod served;

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use quinn_proto::{ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, EndpointEvent};
use rustix::event::epoll::{self, EventData, EventFlags};

use delays::{Allowance, Delays};
use lateness::Lateness;
use loadgen::clock::{now_ns, timespec};
use loadgen::engine::http3::dialer::{instant, nanoseconds};
use queue::{AT_ONCE, Due, Queue};
use served::{Served, config};

const LONGEST_WAIT_NS: u64 = 100_000_000;
const SOCKET: u64 = 0;
const PARENT: u64 = 1;

#[derive(Parser)]
#[command(about = "An HTTP/3 server with known delays; it ends when its standard input closes")]
struct Options {
    #[command(flatten)]
    allowance: Allowance,
    #[command(subcommand)]
    delays: Delays,
}

struct Server {
    options: Options,
    socket: UdpSocket,
    epoll: OwnedFd,
    endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, Served>,
    requests: u64,
    queue: Queue,
    lateness: Lateness,
    outgoing: Vec<u8>,
}

impl Server {
    fn new(options: Options) -> Result<Self, Box<dyn Error>> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &socket, EventData::new_u64(SOCKET), EventFlags::IN)?;
        epoll::add(&epoll, io::stdin(), EventData::new_u64(PARENT), EventFlags::IN)
            .map_err(|error| format!("standard input must be a pipe or a terminal: {error}"))?;
        let endpoint = Arc::new(EndpointConfig::default());
        let endpoint = Endpoint::new(endpoint, Some(Arc::new(config()?)), true, None);
        Ok(Self {
            options,
            socket,
            epoll,
            endpoint,
            connections: HashMap::new(),
            requests: 0,
            queue: Queue::default(),
            lateness: Lateness::new()?,
            outgoing: Vec::new(),
        })
    }

    /// Serves until standard input closes.
    fn serve(&mut self) -> Result<(), Box<dyn Error>> {
        let mut events = Vec::with_capacity(2);
        loop {
            let wait = timespec(self.wait_ns());
            epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait))?;
            for event in events.drain(..) {
                match event.data.u64() {
                    PARENT => return Ok(()),
                    _ => self.read()?,
                }
            }
            self.answer_some();
            self.move_late();
        }
    }

    fn wait_ns(&mut self) -> u64 {
        if self.queue.is_due() {
            return 0;
        }
        let now_ns = now_ns();
        let timeouts = self.connections.values_mut().filter_map(|it| it.quic.poll_timeout());
        let next_ns = timeouts.map(nanoseconds).chain(self.queue.next_at_ns()).min();
        next_ns.map_or(LONGEST_WAIT_NS, |at_ns| at_ns.saturating_sub(now_ns)).min(LONGEST_WAIT_NS)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut incoming = [0; 2048];
        let mut touched = Vec::new();
        loop {
            let (count, from) = match self.socket.recv_from(&mut incoming) {
                Ok(came) => came,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // A client that has gone.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            if let Some(handle) = self.take(&incoming[..count], from)
                && touched.last() != Some(&handle)
            {
                touched.push(handle);
            }
        }
        touched.into_iter().for_each(|handle| self.look_at(handle));
        Ok(())
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr) -> Option<ConnectionHandle> {
        let (now, mut reply) = (instant(now_ns()), Vec::new());
        match self.endpoint.handle(now, from, None, None, datagram.into(), &mut reply)? {
            DatagramEvent::Response(transmit) => {
                let _ = self.socket.send_to(&reply[..transmit.size], transmit.destination);
                None
            }
            DatagramEvent::ConnectionEvent(handle, event) => {
                self.connections.get_mut(&handle)?.quic.handle_event(event);
                Some(handle)
            }
            DatagramEvent::NewConnection(incoming) => {
                let (handle, quic) = self.endpoint.accept(incoming, now, &mut reply, None).ok()?;
                self.connections.insert(handle, Served { quic });
                Some(handle)
            }
        }
    }

    /// Takes note of requests, and sends what QUIC has to.
    fn look_at(&mut self, handle: ConnectionHandle) {
        let Some(served) = self.connections.get_mut(&handle) else { return };
        while let Some(event) = served.quic.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                served.quic.handle_event(event);
            }
        }
        let arrived_ns = now_ns();
        let Some(requests) = served.requests() else {
            self.connections.remove(&handle);
            self.endpoint.handle_event(handle, EndpointEvent::drained());
            return;
        };
        for stream in requests {
            let at_ns = self.options.delays.answer_at_ns(arrived_ns, self.requests);
            self.queue.push(Due {
                latest_ns: self.options.allowance.latest_ns(arrived_ns, at_ns),
                at_ns,
                count: self.requests,
                place: handle.0,
                serial: stream.into(),
            });
            self.requests += 1;
        }
        served.send(&self.socket, &mut self.outgoing);
    }

    /// Writes answers that are due, but not more than `AT_ONCE`.
    fn answer_some(&mut self) {
        for _ in 0..AT_ONCE {
            let now_ns = now_ns();
            let Some(due) = self.queue.pop(now_ns) else { return };
            self.lateness.count(&due, now_ns);
            if let Some(served) = self.connections.get_mut(&ConnectionHandle(due.place)) {
                served.answer(due.serial);
                served.send(&self.socket, &mut self.outgoing);
            }
        }
    }

    /// What QUIC wants to do by now.
    fn move_late(&mut self) {
        let now = instant(now_ns());
        let mut late = Vec::new();
        for (handle, served) in &mut self.connections {
            if served.quic.poll_timeout().is_some_and(|at: Instant| at <= now) {
                served.quic.handle_timeout(now);
                late.push(*handle);
            }
        }
        late.into_iter().for_each(|handle| self.look_at(handle));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut server = Server::new(Options::parse())?;
    println!("{}", serde_json::json!({"port": server.socket.local_addr()?.port()}));
    server.serve()?;
    println!("{}", server.lateness.told(server.requests));
    Ok(())
}
