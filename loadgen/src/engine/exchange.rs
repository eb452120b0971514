//! HTTP/1.1 on one connection: a request written, its answer read.
//!
//! A read that empties a socket makes the kernel send an ACK of its own, which costs as much as
//! a request. Where the next request follows at once, an answer that has arrived in full is
//! therefore left in the kernel until that request is sent and carries the ACK
//! (`tcp_cleanup_rbuf` in the kernel's net/ipv4/tcp.c). While we wait for the rest of an answer
//! nothing is left there, so that servers get their ACKs as from any other client.

mod scratch;

use std::io;

use rustix::net::RecvFlags;
use sha2::{Digest, Sha256};

use self::scratch::DROP_BYTES;
use super::plan::Ready;
use super::reasons::MOST_ANSWER_BYTES;
use super::socket::Got;
use super::users::User;
use super::wire::Wire;
use crate::events::EventStream;
use crate::expect::CHECKSUM_EVERY;
use crate::http1::head::{Framing, Malformed};
use crate::http1::response::{HeadCache, Response};
use crate::session::capture::MOST_BODY_BYTES;

pub use scratch::{READ_BYTES, Scratch};

/// From this length on, dropping a body in the kernel costs less than reading it.
const DROP_FROM_BYTES: u64 = 16 * 1024;
/// Up to this length (`TCP_MSS_DEFAULT`), the kernel acknowledges an answer that came in several
/// segments when it is read; longer ones when they arrive.
const ACKED_WHEN_READ_BYTES: u64 = 536;

/// What a thread remembers of one request during a slot.
#[derive(Debug, Default)]
pub struct Memory {
    head: HeadCache,
    /// A short answer came in several segments, so that reading such a one sends an ACK; None
    /// where nobody knows.
    in_pieces: Option<bool>,
    asked: u32,
    /// A valid response was whole.
    pub is_answered: bool,
}

impl Memory {
    /// Short answers come in several segments, as far as it is known.
    pub fn is_in_pieces(&self) -> bool {
        self.in_pieces == Some(true)
    }

    /// A checksum to compute, when the body of the next answer is to be read in full: that of the
    /// first and of every so-many-th. A request that doesn't count (`counts`) shifts none of them.
    pub fn next_hash(&mut self, request: &Ready, counts: bool) -> Option<Box<Sha256>> {
        request.expect.body_sha256?;
        let wanted = self.asked.is_multiple_of(CHECKSUM_EVERY);
        self.asked = self.asked.wrapping_add(u32::from(counts));
        wanted.then(Box::default)
    }
}

/// How far a write got.
#[derive(Debug)]
pub enum Sending {
    All,
    Some,
    Nothing,
    Broken(io::Error),
}

/// What one read brought.
#[derive(Debug)]
pub enum Received {
    /// Nothing was there.
    Nothing,
    /// A part of the answer. `drained`: nothing more is there now.
    Part {
        drained: bool,
    },
    /// The answer's end, and nothing after it.
    Answer,
    Malformed(Malformed),
    /// The server closed; `cut` as in [`Got::End`].
    Closed {
        cut: bool,
    },
    Lost(io::Error),
}

#[derive(Debug, Default)]
pub struct Exchange {
    pub response: Response,
    /// When the first byte of the answer was seen; 0 before.
    pub first_byte_ns: u64,
    /// We asked the server to close after the request in flight.
    pub last: bool,
    /// Checksum of the body, when it is to be read in full.
    hash: Option<Box<Sha256>>,
    /// Bytes of the request that were taken to be sent.
    written: usize,
    /// Bytes that were taken in but still lie in the kernel.
    unread: usize,
    /// Segments that had come when the request was sent, where those of its answer are counted.
    segments_before: Option<u32>,
    /// Who asks, where users differ.
    pub user: Option<Box<User>>,
    /// The user looks into the answer's body.
    reads_body: bool,
    /// The answer's events, where it is a stream of them.
    pub events: Option<Box<EventStream>>,
}

impl Exchange {
    /// Makes ready for a request; `keeps_body`: whatever the user needs of the answer.
    pub fn begin(
        &mut self,
        request: &Ready,
        hash: Option<Box<Sha256>>,
        last: bool,
        keeps_body: bool,
    ) {
        self.written = 0;
        self.first_byte_ns = 0;
        self.last = last;
        self.hash = hash;
        self.events = request.events.map(|format| Box::new(EventStream::new(format)));
        self.response.reset(request.asked, request.script.is_some());
        if let (Some(user), Some(script)) = (&mut self.user, &request.script) {
            user.write(script, last);
            self.reads_body = keeps_body || script.reads_body;
        }
    }

    /// The request is the other side's: it sends what is awaited.
    pub fn sends_nothing(&mut self, request: &Ready) {
        self.written = self.bytes(request).len();
    }

    /// Makes ready to send what others await.
    pub fn begin_sending(&mut self) {
        self.written = 0;
    }

    /// Has the segments of the answer counted, unless it is known how such ones come: who looks
    /// seldom finds them together.
    pub fn watch_pieces(&mut self, wire: &Wire, memory: &Memory) {
        if memory.in_pieces.is_none() && wire.can_drop {
            self.segments_before = wire.segments_in();
        }
    }

    /// Makes ready for another connection; its user stays.
    pub fn renew(&mut self) {
        let user = self.user.take();
        *self = Exchange { user, ..Exchange::default() };
    }

    /// Writes what is left of the request.
    #[inline(always)]
    pub fn send(&mut self, wire: &mut Wire, request: &Ready) -> Sending {
        if self.written == 0 && !self.send_pongs(wire) {
            return Sending::Nothing;
        }
        let bytes = self.bytes(request);
        match wire.write(&bytes[self.written..]) {
            Ok(count) => {
                self.written += count;
                match count {
                    _ if self.is_sent(wire, request) => Sending::All,
                    0 => Sending::Nothing,
                    _ => Sending::Some,
                }
            }
            Err(error) => Sending::Broken(error),
        }
    }

    /// Goes on with a request that didn't fit at once.
    pub fn go_on_sending(&mut self, wire: &mut Wire, request: &Ready) {
        // A broken pipe shows when reading, where an early answer may still wait.
        let _ = wire.flush();
        if !self.is_sent(wire, request) {
            let _ = self.send(wire, request);
        }
    }

    /// The request has left completely.
    pub fn is_sent(&self, wire: &Wire, request: &Ready) -> bool {
        self.written == self.bytes(request).len() && wire.is_flushed()
    }

    fn bytes<'a>(&'a self, request: &'a Ready) -> &'a [u8] {
        match (&self.user, &request.script) {
            (Some(user), Some(_)) => user.request(),
            _ => request.rendered.bytes(self.last),
        }
    }

    /// Reads once, or drops body bytes in the kernel where nobody needs them. `defers`: the next
    /// request follows at once, and then [`Self::discard`].
    #[inline(always)]
    pub fn receive(
        &mut self,
        wire: &mut Wire,
        scratch: &mut Scratch,
        memory: &mut Memory,
        request: &Ready,
        defers: bool,
    ) -> Received {
        let opaque = self.response.opaque();
        let reads = self.hash.is_some()
            || self.reads_body
            || self.events.is_some()
            || self.shows_beginning(request);
        let drops = wire.can_drop && !reads;
        if opaque >= DROP_FROM_BYTES && drops {
            return self.receive_dropping(wire, opaque, scratch);
        }
        let whole = !drops || self.response.has_begun();
        let room = if whole { READ_BYTES } else { first_read_bytes(&memory.head) };
        let peeks = defers && memory.is_in_pieces() && wire.can_drop && !self.last;
        let flags = if peeks { RecvFlags::PEEK } else { RecvFlags::empty() };
        let received = self.receive_up_to(room, flags, wire, scratch, memory);
        if self.response.messages.is_some() && self.is_sent(wire, request) {
            self.send_pongs(wire);
        }
        received
    }

    /// A user is answered with a status that isn't right: what it says is shown.
    fn shows_beginning(&self, request: &Ready) -> bool {
        let status = self.response.status;
        request.script.is_some()
            && status > 0
            && !request.expect.has_right_status(status)
            && self.user.as_ref().is_some_and(|user| user.body().len() < MOST_ANSWER_BYTES)
    }

    #[inline(always)]
    pub fn receive_up_to(
        &mut self,
        room: usize,
        flags: RecvFlags,
        wire: &mut Wire,
        scratch: &mut Scratch,
        memory: &mut Memory,
    ) -> Received {
        let (count, drained) = match wire.read(&mut scratch.read[..room], flags) {
            Ok(Got::Bytes { count, drained }) => (count, drained),
            Ok(Got::Nothing) => return Received::Nothing,
            Ok(Got::End { cut }) => return Received::Closed { cut },
            Err(error) => return Received::Lost(error),
        };
        let is_first = !self.response.has_begun() && self.response.messages.is_none();
        scratch.begun = if is_first { count } else { 0 };
        self.unread = if flags.contains(RecvFlags::PEEK) { count } else { 0 };
        let hash = &mut self.hash;
        let mut reader = self.user.as_deref_mut();
        let kept_bytes = if self.reads_body { MOST_BODY_BYTES } else { MOST_ANSWER_BYTES };
        let mut events = self.events.as_deref_mut();
        let sink = |data: &[u8]| {
            if let Some(hash) = hash {
                hash.update(data);
            }
            if let Some(reader) = &mut reader {
                reader.read(data, kept_bytes);
            }
            if let Some(events) = &mut events {
                events.read(data);
            }
        };
        let received = match self.response.feed(&scratch.read[..count], &mut memory.head, sink) {
            Err(malformed) => Received::Malformed(malformed),
            // What follows is another protocol.
            Ok(_) if self.response.is_upgraded() => Received::Answer,
            Ok(used) if used < count => Received::Malformed(Malformed::Surplus),
            Ok(_) if !self.response.is_done() => match self.response.farewell() {
                None => Received::Part { drained },
                Some(_) => Received::Closed { cut: false },
            },
            Ok(_) if !drained && self.more_follows(wire, scratch) => {
                Received::Malformed(Malformed::Surplus)
            }
            Ok(_) => Received::Answer,
        };
        let stays = self.response.is_done() && self.response.keep_alive;
        if !stays || matches!(received, Received::Malformed(_)) {
            self.discard(wire, scratch);
        }
        received
    }

    /// `MSG_TRUNC` on TCP: the kernel frees the bytes without copying them (tcp(7)). Where they are
    /// the answer's last, it is asked for one byte more, which shows whether there is one.
    fn receive_dropping(
        &mut self,
        wire: &mut Wire,
        opaque: u64,
        scratch: &mut Scratch,
    ) -> Received {
        scratch.begun = 0;
        let beyond = u64::from(self.response.ends_after_opaque());
        let room = opaque.saturating_add(beyond).min(DROP_BYTES as u64) as usize;
        match wire.read(&mut scratch.dropped[..room], RecvFlags::TRUNC) {
            Ok(Got::Bytes { count, .. }) if count as u64 > opaque => {
                Received::Malformed(Malformed::Surplus)
            }
            Ok(Got::Bytes { count, drained }) => {
                self.response.skip(count as u64);
                match self.response.is_done() {
                    true => Received::Answer,
                    false => Received::Part { drained },
                }
            }
            Ok(Got::Nothing) => Received::Nothing,
            Ok(Got::End { cut }) => Received::Closed { cut },
            Err(error) => Received::Lost(error),
        }
    }

    /// An answer filled the buffer to its last byte: something more may be there.
    fn more_follows(&mut self, wire: &mut Wire, scratch: &mut Scratch) -> bool {
        if self.response.messages.is_some() {
            // It may be a ping: it is looked at with what follows.
            return false;
        }
        self.discard(wire, scratch);
        matches!(wire.read(&mut scratch.dropped[..1], RecvFlags::PEEK), Ok(Got::Bytes { .. }))
    }

    /// Takes out of the kernel what was left there.
    pub fn discard(&mut self, wire: &mut Wire, scratch: &mut Scratch) {
        while self.unread > 0 {
            let room = self.unread.min(DROP_BYTES);
            // It was there; a connection that breaks now shows it at its next use.
            let dropped = wire.drop_seen(&mut scratch.dropped[..room]);
            self.unread = dropped.map_or(0, |count| self.unread - count);
        }
    }

    /// Ends the exchange: gives the checksum, if the body was read in full, and what the user
    /// misses in an answer that is valid otherwise.
    pub fn end(
        &mut self,
        memory: &mut Memory,
        request: &Ready,
        wire: &Wire,
        done_ns: u64,
    ) -> (Option<Box<Sha256>>, Option<String>) {
        let bytes = self.response.head_bytes + self.response.body_bytes;
        let is_short = bytes <= ACKED_WHEN_READ_BYTES;
        if self.first_byte_ns != done_ns && is_short {
            memory.in_pieces = Some(true);
        } else if let Some(before) = self.segments_before.take() {
            let several = wire.segments_in().is_some_and(|count| count.wrapping_sub(before) > 1);
            memory.in_pieces.get_or_insert(several && is_short);
        }
        self.reads_body = false;
        let missing = match (&mut self.user, &request.script) {
            (Some(user), Some(script)) => {
                let is_valid = request.expect.has_right_status(self.response.status);
                user.take(script, &self.response.kept_head, is_valid)
            }
            _ => None,
        };
        (self.hash.take(), missing)
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
