//! One request and its answer over a line.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use sha2::{Digest, Sha256};
use tokio::io::AsyncWrite;

use super::books::{Answer, Outcome};
use super::door::Line;
use super::slot::Slot;
use super::wire::{Wire, poll_read};
use crate::engine::clock::now_ns;
use crate::http1::head::Malformed;
use crate::http1::response::Response;
use crate::record::Failure;
use crate::schedule::Ask;

/// Sends a request and reads its answer. `last`: the server is asked to close afterwards.
pub async fn exchange(slot: &Slot, lane: usize, line: &mut Line, ask: Ask, last: bool) -> Outcome {
    let request = &slot.plan.requests[ask.request];
    let cookies = slot.plan.order.load.cookies;
    let with_cookies = request.rendered.with_cookies(last, &line.jar);
    let bytes = if with_cookies.is_empty() { request.rendered.bytes(last) } else { &with_cookies };
    let mut reading = Reading {
        slot,
        request: ask.request,
        response: Response::default(),
        hash: slot.hash_for(ask.request),
        first_byte_ns: 0,
    };
    reading.response.reset(request.is_head, cookies);
    slot.sent(lane, line.requests > 0);
    line.requests += 1;
    let mut writing = Writing { bytes, at: 0, is_done: false };
    let outcome = poll_fn(|cx| {
        if !writing.is_done
            && let Poll::Ready(Err(_)) = writing.poll(&mut line.wire, cx)
        {
            if writing.at == 0 {
                return Poll::Ready(Outcome::Unsent);
            }
            // An early answer may still wait; if there is none, reading says so.
            writing.bytes = &writing.bytes[..writing.at];
        }
        reading.poll(&mut line.wire, cx)
    })
    .await;
    if cookies {
        line.jar.keep(&reading.response.take_kept_head());
    }
    match outcome {
        Outcome::Answered(mut answer) => {
            answer.stays &= writing.is_done && !last;
            Outcome::Answered(answer)
        }
        other => other,
    }
}

struct Writing<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Written and flushed.
    is_done: bool,
}

impl Writing<'_> {
    fn poll(&mut self, wire: &mut Wire, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.at < self.bytes.len() {
            match Pin::new(&mut *wire).poll_write(cx, &self.bytes[self.at..])? {
                Poll::Ready(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(count) => self.at += count,
                Poll::Pending => return Poll::Pending,
            }
        }
        let flushed = Pin::new(wire).poll_flush(cx)?;
        self.is_done = flushed.is_ready();
        flushed.map(Ok)
    }
}

struct Reading<'a> {
    slot: &'a Slot,
    request: usize,
    response: Response,
    hash: Option<Sha256>,
    first_byte_ns: u64,
}

impl Reading<'_> {
    fn poll(&mut self, wire: &mut Wire, cx: &mut Context<'_>) -> Poll<Outcome> {
        loop {
            let mut scratch = self.slot.scratch.borrow_mut();
            let Poll::Ready(read) = poll_read(wire, cx, &mut scratch.bytes) else {
                return Poll::Pending;
            };
            let read_ns = now_ns();
            let count = match read {
                Ok(0) => return Poll::Ready(self.closed(read_ns)),
                Ok(count) => count,
                Err(error) => return Poll::Ready(self.broken(&error)),
            };
            scratch.filled = count;
            if self.first_byte_ns == 0 {
                self.first_byte_ns = read_ns;
            }
            match self.take(&scratch.bytes[..count]) {
                Err(malformed) => {
                    let why = malformed.to_string();
                    return Poll::Ready(Outcome::Failed(Failure::Malformed, why));
                }
                Ok(()) if self.response.is_done() => return Poll::Ready(self.answer(read_ns)),
                Ok(()) => {}
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let hash = &mut self.hash;
        let sink = |data: &[u8]| {
            if let Some(hash) = hash {
                hash.update(data);
            }
        };
        let mut memory = self.slot.memory.borrow_mut();
        let used = self.response.feed(bytes, &mut memory[self.request].head, sink)?;
        if used < bytes.len() { Err(Malformed::Surplus) } else { Ok(()) }
    }

    fn answer(&mut self, done_ns: u64) -> Outcome {
        Outcome::Answered(Answer {
            status: self.response.status(),
            head_bytes: self.response.head_bytes(),
            body_bytes: self.response.body_bytes(),
            hash: self.hash.take(),
            first_byte_ns: self.first_byte_ns,
            done_ns,
            stays: self.response.keep_alive(),
        })
    }

    fn closed(&mut self, done_ns: u64) -> Outcome {
        if self.response.end_of_stream() {
            return self.answer(done_ns);
        }
        if self.response.has_begun() {
            let why = "closed in the middle of the answer";
            return Outcome::Failed(Failure::Truncated, why.into());
        }
        Outcome::Failed(Failure::Reset, "closed without an answer".into())
    }

    fn broken(&self, error: &io::Error) -> Outcome {
        let failure = match error.kind() {
            // TLS: the end came without being announced, so the answer may have been cut.
            io::ErrorKind::UnexpectedEof if self.response.has_begun() => Failure::Truncated,
            io::ErrorKind::InvalidData => Failure::Malformed,
            _ => Failure::Reset,
        };
        Outcome::Failed(failure, format!("connection lost: {error}"))
    }
}
