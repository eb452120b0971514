//! The floor of HTTP/3: the least that one client thread pays for a request over this library's QUIC.
//!
//! Each connection has a socket and one request in flight, as loadgen's have. Of an answer only its
//! end is waited for: no frames are read, no header fields, no times, no checks. `bench/http3.py`
//! holds loadgen against it.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use loadgen::clock::now_ns;
use loadgen::engine::http3::dialer::{Dialer, instant};
use loadgen::engine::http3::socket::Socket;
use loadgen::http3::request::frames;
use loadgen::order::{Protocol, Request, Tls};
use loadgen::target::Target;
use loadgen::tls::client_config;
use quinn_proto::{Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, StreamEvent};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustls::pki_types::ServerName;
use serde_json::json;

const LOOK_AT_CLOCK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

#[derive(Parser)]
#[command(about = "Bare QUIC: the least that a request of HTTP/3 can cost here")]
struct Options {
    /// URL to ask for, of an address
    url: String,
    /// Connections, each with one request in flight
    #[arg(short, long, default_value_t = 64)]
    connections: usize,
    /// Seconds of load
    #[arg(short, long, default_value_t = 1.0)]
    duration: f64,
}

struct Client {
    socket: Socket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    quic: Connection,
    answered: u64,
}

impl Client {
    fn new(dialer: &Dialer, address: SocketAddr) -> Result<Client, Box<dyn Error>> {
        let socket = Socket::open(address, None)?;
        let name = ServerName::from(address.ip());
        let (endpoint, handle, quic) = dialer.dial(address, &name, socket.may_fragment())?;
        Ok(Client { socket, endpoint, handle, quic, answered: 0 })
    }

    fn go_on(&mut self, request: &[u8], outgoing: &mut Vec<u8>) -> io::Result<()> {
        let now = instant(now_ns());
        let Client { socket, endpoint, handle, quic, .. } = self;
        loop {
            let mut replies = Vec::new();
            let all = socket.receive(|from, ecn, datagram| {
                let event = endpoint.handle(now, from, None, ecn, datagram, &mut replies);
                if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                    quic.handle_event(event);
                }
            })?;
            if all {
                break;
            }
        }
        if quic.poll_timeout().is_some_and(|at| at <= now) {
            quic.handle_timeout(now);
        }
        while let Some(event) = quic.poll_endpoint_events() {
            if let Some(event) = endpoint.handle_event(*handle, event) {
                quic.handle_event(event);
            }
        }
        while let Some(event) = quic.poll() {
            match event {
                Event::Connected => ask(quic, request),
                Event::ConnectionLost { reason } => return Err(io::Error::other(reason)),
                Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Bi => {
                    let mut incoming = quic.recv_stream(id);
                    let Ok(mut chunks) = incoming.read(true) else { continue };
                    let is_whole = loop {
                        match chunks.next(usize::MAX) {
                            Ok(Some(_)) => {}
                            outcome => break matches!(outcome, Ok(None)),
                        }
                    };
                    drop(chunks);
                    if is_whole {
                        self.answered += 1;
                        ask(quic, request);
                    }
                }
                _ => {}
            }
        }
        outgoing.clear();
        while let Some(transmit) = quic.poll_transmit(now, socket.most_segments(), outgoing) {
            socket.send(&transmit, outgoing)?;
            outgoing.clear();
        }
        Ok(())
    }
}

fn ask(quic: &mut Connection, request: &[u8]) {
    if let Some(id) = quic.streams().open(Dir::Bi) {
        let _ = quic.send_stream(id).write(request);
        let _ = quic.send_stream(id).finish();
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse();
    let target = Target::parse(&options.url)?;
    let address: SocketAddr = target.host.parse()?;
    let request = frames(&Request::get(options.url.clone()), &target)?;
    let tls = Tls { verify: false, ..Tls::default() };
    let dialer = Dialer::new(Arc::new(client_config(&tls, Protocol::Http3)?))?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut clients = Vec::new();
    let mut outgoing = Vec::new();
    for place in 0..options.connections {
        let mut client = Client::new(&dialer, address)?;
        let key = epoll::EventData::new_u64(place as u64);
        epoll::add(&poll, &client.socket, key, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        client.go_on(&request, &mut outgoing)?;
        clients.push(client);
    }
    let until = Instant::now() + Duration::from_secs_f64(options.duration);
    let mut events = Vec::with_capacity(256);
    while Instant::now() < until {
        let room = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&poll, room, Some(&LOOK_AT_CLOCK)) {
            Ok(0) => {
                // QUIC may have something to send again.
                for client in &mut clients {
                    client.go_on(&request, &mut outgoing)?;
                }
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in events.drain(..) {
            clients[event.data.u64() as usize].go_on(&request, &mut outgoing)?;
        }
    }
    let answered: u64 = clients.iter().map(|client| client.answered).sum();
    println!("{}", json!({"completed": answered}));
    Ok(())
}
