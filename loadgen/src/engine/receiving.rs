//! Reading answers from a connection.
//!
//! A read that empties the socket makes the kernel send an ACK of its own, which costs as much as
//! a request. Where the next request follows at once, an answer that has arrived in full is
//! therefore left in the kernel until that request is sent and carries the ACK
//! (`tcp_cleanup_rbuf` in the kernel's net/ipv4/tcp.c). While we wait for the rest of an answer
//! nothing is left there, so that servers get their ACKs as from any other client.

use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use sha2::Digest;

use super::conn::{Conn, Role};
use super::slot::Memory;
use crate::http1::head::{Framing, Malformed};
use crate::http1::response::HeadCache;

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

impl Conn {
    /// Reads once, or drops body bytes in the kernel where nobody needs them. `defers`: the next
    /// request follows at once, and then [`Self::discard`].
    pub fn receive(
        &mut self,
        scratch: &mut Scratch,
        memory: &mut Memory,
        defers: bool,
    ) -> Received {
        let cache = &mut memory.head;
        if self.role == Role::Slow {
            return self.receive_up_to(self.slow_read_bytes, RecvFlags::empty(), scratch, cache);
        }
        let opaque = self.response.opaque();
        let drops = self.can_drop && self.hash.is_none();
        if opaque >= DROP_FROM_BYTES && drops {
            return self.receive_dropping(opaque, scratch);
        }
        let room =
            if drops && !self.response.has_begun() { first_read_bytes(cache) } else { READ_BYTES };
        let peeks = defers && memory.in_pieces && self.can_drop && !self.last;
        let flags = if peeks { RecvFlags::PEEK } else { RecvFlags::empty() };
        self.receive_up_to(room, flags, scratch, cache)
    }

    fn receive_up_to(
        &mut self,
        room: usize,
        flags: RecvFlags,
        scratch: &mut Scratch,
        cache: &mut HeadCache,
    ) -> Received {
        let Some(fd) = &self.fd else { return Received::Closed };
        let count = match recv(fd, &mut scratch.read[..room], flags) {
            Ok((0, _)) => return Received::Closed,
            Ok((count, _)) => count,
            Err(error) => return no_bytes(error),
        };
        scratch.filled = count;
        self.unread = if flags.contains(RecvFlags::PEEK) { count } else { 0 };
        let drained = count < room;
        let hash = &mut self.hash;
        let sink = |data: &[u8]| {
            if let Some(hash) = hash {
                hash.update(data);
            }
        };
        let received = match self.response.feed(&scratch.read[..count], cache, sink) {
            Err(malformed) => Received::Malformed(malformed),
            Ok(used) if used < count => Received::Malformed(Malformed::Surplus),
            Ok(_) if self.response.is_done() => Received::Answer { drained },
            Ok(_) => Received::Part { drained },
        };
        let stays = self.response.is_done() && self.response.keep_alive();
        if !stays || matches!(received, Received::Malformed(_)) {
            self.discard(scratch);
        }
        received
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

    /// Takes out of the kernel what was left there.
    pub fn discard(&mut self, scratch: &mut Scratch) {
        while self.unread > 0
            && let Some(fd) = &self.fd
        {
            let room = self.unread.min(DROP_BYTES);
            match recv(fd, &mut scratch.dropped[..room], RecvFlags::TRUNC) {
                Ok((count, _)) if count > 0 => self.unread -= count,
                // It was there; a connection that breaks now shows it at its next use.
                _ => self.unread = 0,
            }
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
