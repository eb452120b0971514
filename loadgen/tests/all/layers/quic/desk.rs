//! The thread of a server over QUIC: it moves datagrams, and does what the scripts of its connections
//! order.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointEvent, Event, StreamEvent,
    StreamId, WriteError,
};

use super::{Begins, Order, Session};

/// A connection, and who waits for its requests.
pub struct Served {
    pub quic: Connection,
    requests: Sender<StreamId>,
    pub unsent: HashMap<StreamId, Unsent>,
}

/// What there was no room for.
#[derive(Default)]
pub struct Unsent {
    pub bytes: Vec<u8>,
    pub ends: bool,
}

impl Served {
    /// Sends what there is room for.
    pub fn send(&mut self) {
        self.unsent.retain(|id, unsent| {
            while !unsent.bytes.is_empty() {
                match self.quic.send_stream(*id).write(&unsent.bytes) {
                    Ok(count) => drop(unsent.bytes.drain(..count)),
                    Err(WriteError::Blocked) => return true,
                    Err(_) => return false,
                }
            }
            if unsent.ends {
                let _ = self.quic.send_stream(*id).finish();
            }
            false
        });
    }
}

pub struct Desk<F> {
    pub endpoint: Endpoint,
    pub socket: UdpSocket,
    pub begins: Begins,
    pub script: Arc<F>,
    pub sessions: HashMap<ConnectionHandle, Served>,
    pub count: Arc<AtomicUsize>,
    pub orders: Sender<Order>,
    pub inbox: Receiver<Order>,
}

impl<F: Fn(Session) + Send + Sync + 'static> Desk<F> {
    pub fn serve(mut self, stop: &AtomicBool) {
        let mut incoming = vec![0; 65_536];
        while !stop.load(Ordering::Relaxed) {
            let wait = self.wait().clamp(Duration::from_micros(50), Duration::from_millis(20));
            self.socket.set_read_timeout(Some(wait)).expect("a time");
            if let Ok((count, from)) = self.socket.recv_from(&mut incoming)
                && count > 1
            {
                self.take(&incoming[..count], from);
            }
            for order in self.inbox.try_iter().collect::<Vec<_>>() {
                match order {
                    Order::Do(handle, command) => {
                        if let Some(served) = self.sessions.get_mut(&handle) {
                            command(served, Instant::now());
                        }
                    }
                    Order::Forget(handle) => {
                        if self.sessions.remove(&handle).is_some() {
                            self.endpoint.handle_event(handle, EndpointEvent::drained());
                        }
                    }
                }
            }
            self.move_all();
        }
    }

    fn wait(&mut self) -> Duration {
        let now = Instant::now();
        let next = self.sessions.values_mut().filter_map(|it| it.quic.poll_timeout()).min();
        next.map_or(Duration::MAX, |at| at.saturating_duration_since(now))
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr) {
        let (now, mut reply) = (Instant::now(), Vec::new());
        match self.endpoint.handle(now, from, None, None, datagram.into(), &mut reply) {
            None => {}
            Some(DatagramEvent::Response(transmit)) => {
                let _ = self.socket.send_to(&reply[..transmit.size], transmit.destination);
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(served) = self.sessions.get_mut(&handle) {
                    served.quic.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.endpoint.accept(incoming, now, &mut reply, None) {
                    Ok((handle, quic)) => self.begin(handle, quic),
                    Err(refused) => {
                        if let Some(transmit) = refused.response {
                            let bytes = &reply[..transmit.size];
                            let _ = self.socket.send_to(bytes, transmit.destination);
                        }
                    }
                }
            }
        }
    }

    fn begin(&mut self, handle: ConnectionHandle, quic: Connection) {
        let wake = UdpSocket::bind("127.0.0.1:0").expect("a port");
        wake.connect(self.socket.local_addr().expect("an address")).expect("a socket");
        let (sender, requests) = channel();
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let session = Session { number, handle, orders: self.orders.clone(), wake, requests };
        let served = Served { quic, requests: sender, unsent: HashMap::new() };
        self.sessions.insert(handle, served);
        let script = Arc::clone(&self.script);
        thread::spawn(move || script(session));
    }

    fn move_all(&mut self) {
        let now = Instant::now();
        let mut over = Vec::new();
        for (handle, served) in &mut self.sessions {
            let Served { quic, requests, .. } = served;
            if quic.poll_timeout().is_some_and(|at| at <= now) {
                quic.handle_timeout(now);
            }
            while let Some(event) = quic.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    quic.handle_event(event);
                }
            }
            while let Some(event) = quic.poll() {
                match event {
                    Event::Connected if !self.begins.control.is_empty() => {
                        // A script may have used up the room for it.
                        if let Some(id) = quic.streams().open(Dir::Uni) {
                            let _ = quic.send_stream(id).write(self.begins.control);
                        }
                    }
                    Event::ConnectionLost { .. } => over.push(*handle),
                    Event::Stream(StreamEvent::Opened { dir }) => {
                        while let Some(id) = quic.streams().accept(dir) {
                            read(quic, id, requests);
                        }
                    }
                    Event::Stream(StreamEvent::Readable { id }) => read(quic, id, requests),
                    _ => {}
                }
            }
            served.send();
            let (quic, mut outgoing) = (&mut served.quic, Vec::new());
            while let Some(transmit) = quic.poll_transmit(now, 1, &mut outgoing) {
                let _ = self.socket.send_to(&outgoing[..transmit.size], transmit.destination);
                outgoing.clear();
            }
        }
        for handle in over {
            self.sessions.remove(&handle);
            self.endpoint.handle_event(handle, EndpointEvent::drained());
        }
    }
}

/// What a request says doesn't matter, but its end does.
fn read(quic: &mut Connection, id: StreamId, requests: &Sender<StreamId>) {
    let mut incoming = quic.recv_stream(id);
    let Ok(mut chunks) = incoming.read(true) else { return };
    let is_whole = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let _ = chunks.finalize();
    if is_whole && id.dir() == Dir::Bi {
        // The script may have ended.
        let _ = requests.send(id);
    }
}
