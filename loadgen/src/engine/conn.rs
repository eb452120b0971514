//! One connection: its socket, what is in flight on it, and writing.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{SendFlags, send};
use sha2::Sha256;

use crate::engine::plan::Ready;
use crate::http1::cookies::CookieJar;
use crate::http1::response::Response;
use crate::schedule::Ask;

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Load,
    /// Reads slowly, beside the load.
    Slow,
    /// Asks once and is then held open, beside the load.
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
    /// Failures since the last answer; of an idle connection: how often it was lost.
    pub strikes: u32,
    /// A slow reader that waits until it may read on.
    pub paused: bool,
    /// What one read of a slow reader takes.
    pub slow_read_bytes: usize,
    cookies: Option<Box<Cookies>>,
    /// The kernel can drop what arrives unread.
    pub can_drop: bool,
    /// Bytes that were taken in but still lie in the kernel.
    pub unread: usize,
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
            unread: 0,
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
        self.unread = 0;
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
}
