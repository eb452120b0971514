//! One connection: its socket, what is in flight on it, and reading and writing.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use sha2::{Digest, Sha256};

use crate::engine::plan::Ready;
use crate::http1::cookies::CookieJar;
use crate::http1::head::{Framing, Malformed};
use crate::http1::response::{HeadCache, Response};
use crate::schedule::Ask;

/// Buffers one thread shares among its connections.
#[derive(Debug)]
pub struct Scratch {
    read: Vec<u8>,
    /// Never touched: the kernel drops what would go there. Only its length matters.
    dropped: Vec<u8>,
    /// How much of `read` the last read filled.
    filled: usize,
}

pub const READ_BYTES: usize = 64 * 1024;
const DROP_BYTES: usize = 4 * 1024 * 1024;
/// From this length on, dropping a body in the kernel costs less than reading it.
const DROP_FROM_BYTES: u64 = 16 * 1024;

impl Scratch {
    pub fn new() -> Self {
        Scratch { read: vec![0; READ_BYTES], dropped: vec![0; DROP_BYTES], filled: 0 }
    }

    /// What was read last.
    pub fn last_read(&self) -> &[u8] {
        &self.read[..self.filled]
    }
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Load,
    /// Reads slowly, beside the load.
    Slow,
    /// Is held open, beside the load.
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Closed,
    /// Waiting before the next try to connect.
    Resting,
    Connecting,
    /// Connected, nothing in flight.
    Idle,
    /// A request is in flight.
    Busy,
}

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// Nothing was there.
    Nothing,
    /// A part of the answer. `drained`: nothing more is there now.
    Part {
        drained: bool,
    },
    /// The answer's end.
    Answer {
        drained: bool,
    },
    Malformed(Malformed),
    /// The server closed.
    Closed,
    Reset(Errno),
}

/// Cookies of one connection, and the request that carries them.
#[derive(Debug, Default)]
struct Cookies {
    jar: CookieJar,
    request: Vec<u8>,
}

/// How far a write got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sending {
    All,
    Some,
    Nothing,
    Broken(Errno),
}

#[derive(Debug)]
pub struct Conn {
    pub fd: Option<OwnedFd>,
    pub state: State,
    pub role: Role,
    /// Which user of the slot this connection serves.
    pub lane: u32,
    pub target: usize,
    /// Tells events of this socket from those of the one it replaced.
    pub generation: u32,
    /// What to send, or what is in flight.
    pub ask: Option<Ask>,
    /// When connecting began, or when the request in flight was sent.
    pub since_ns: u64,
    /// When the first byte of the answer was seen; 0 before.
    pub first_byte_ns: u64,
    pub response: Response,
    /// Checksum of the body, when it is to be read in full.
    pub hash: Option<Box<Sha256>>,
    /// Bytes of the request the kernel has taken.
    pub written: usize,
    /// Requests sent over this socket.
    pub requests: u32,
    /// We asked the server to close after the request in flight.
    pub last: bool,
    /// The socket is told of room to write.
    pub watches_room: bool,
    /// Failures since the last answer.
    pub strikes: u32,
    /// A slow reader that waits until it may read on.
    pub paused: bool,
    /// What one read of a slow reader takes.
    pub slow_read_bytes: usize,
    cookies: Option<Box<Cookies>>,
    can_drop: bool,
}

impl Conn {
    pub fn new(can_drop: bool) -> Self {
        Conn {
            fd: None,
            state: State::Closed,
            role: Role::Load,
            lane: 0,
            target: 0,
            generation: 0,
            ask: None,
            since_ns: 0,
            first_byte_ns: 0,
            response: Response::default(),
            hash: None,
            written: 0,
            requests: 0,
            last: false,
            watches_room: false,
            strikes: 0,
            paused: false,
            slow_read_bytes: 0,
            cookies: None,
            can_drop,
        }
    }

    /// Gives a connection its place in a slot.
    pub fn assign(&mut self, role: Role, lane: usize, target: usize) {
        self.role = role;
        self.lane = lane as u32;
        self.target = target;
        self.strikes = 0;
        self.requests = 0;
        self.paused = false;
    }

    /// Closes the socket; what was in flight must have been accounted for.
    pub fn close(&mut self) {
        self.fd = None;
        self.state = State::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.watches_room = false;
        self.requests = 0;
        self.hash = None;
        self.paused = false;
        self.cookies = None;
    }

    /// Writes what is left of the request.
    pub fn send(&mut self, request: &Ready) -> Sending {
        let Some(fd) = &self.fd else { return Sending::Broken(Errno::NOTCONN) };
        let bytes = self.bytes(request);
        match send(fd, &bytes[self.written..], SendFlags::NOSIGNAL) {
            Ok(count) => {
                self.written += count;
                if self.is_sent(request) { Sending::All } else { Sending::Some }
            }
            Err(Errno::AGAIN | Errno::INTR) => Sending::Nothing,
            Err(error) => Sending::Broken(error),
        }
    }

    /// The request in flight has left completely.
    pub fn is_sent(&self, request: &Ready) -> bool {
        self.written == self.bytes(request).len()
    }

    fn bytes<'a>(&'a self, request: &'a Ready) -> &'a [u8] {
        match &self.cookies {
            Some(cookies) if !cookies.request.is_empty() => &cookies.request,
            _ => request.rendered.bytes(self.last),
        }
    }

    /// Renders the request with the cookies of this connection, if it has any.
    pub fn render_cookies(&mut self, request: &Ready) {
        if let Some(cookies) = &mut self.cookies {
            cookies.request = request.rendered.with_cookies(self.last, &cookies.jar);
        }
    }

    /// Keeps the cookies that the answer brought.
    pub fn keep_cookies(&mut self) {
        let head = self.response.take_kept_head();
        if !head.is_empty() {
            self.cookies.get_or_insert_default().jar.keep(&head);
        }
    }

    /// Reads once, or drops body bytes in the kernel where nobody needs them.
    pub fn receive(&mut self, scratch: &mut Scratch, cache: &mut HeadCache) -> Received {
        if self.role == Role::Slow {
            return self.receive_up_to(self.slow_read_bytes, scratch, cache);
        }
        let opaque = self.response.opaque();
        if opaque >= DROP_FROM_BYTES && self.can_drop && self.hash.is_none() {
            return self.receive_dropping(opaque, scratch);
        }
        let room = if self.hash.is_none() && self.can_drop && !self.response.has_begun() {
            first_read_bytes(cache)
        } else {
            READ_BYTES
        };
        self.receive_up_to(room, scratch, cache)
    }

    fn receive_up_to(
        &mut self,
        room: usize,
        scratch: &mut Scratch,
        cache: &mut HeadCache,
    ) -> Received {
        let Some(fd) = &self.fd else { return Received::Closed };
        let count = match recv(fd, &mut scratch.read[..room], RecvFlags::empty()) {
            Ok((0, _)) => return Received::Closed,
            Ok((count, _)) => count,
            Err(error) => return no_bytes(error),
        };
        scratch.filled = count;
        let drained = count < room;
        let hash = &mut self.hash;
        let sink = |data: &[u8]| {
            if let Some(hash) = hash {
                hash.update(data);
            }
        };
        match self.response.feed(&scratch.read[..count], cache, sink) {
            Err(malformed) => Received::Malformed(malformed),
            Ok(used) if used < count => Received::Malformed(Malformed::Surplus),
            Ok(_) if self.response.is_done() => Received::Answer { drained },
            Ok(_) => Received::Part { drained },
        }
    }

    /// `MSG_TRUNC` on TCP: the kernel frees the bytes without copying them (tcp(7)).
    fn receive_dropping(&mut self, opaque: u64, scratch: &mut Scratch) -> Received {
        let Some(fd) = &self.fd else { return Received::Closed };
        let room = opaque.min(DROP_BYTES as u64) as usize;
        match recv(fd, &mut scratch.dropped[..room], RecvFlags::TRUNC) {
            Ok((0, _)) => Received::Closed,
            Ok((count, _)) => {
                self.response.skip(count as u64);
                if self.response.is_done() {
                    return Received::Answer { drained: true };
                }
                Received::Part { drained: count < room }
            }
            Err(error) => no_bytes(error),
        }
    }
}

/// Where the answer's body is worth dropping, the first read takes just the head.
fn first_read_bytes(cache: &HeadCache) -> usize {
    match cache.last() {
        Some(head) => match head.framing {
            Framing::Length(length) if length >= DROP_FROM_BYTES => head.len,
            _ => READ_BYTES,
        },
        None => READ_BYTES,
    }
}

fn no_bytes(error: Errno) -> Received {
    match error {
        Errno::AGAIN | Errno::INTR => Received::Nothing,
        error => Received::Reset(error),
    }
}
