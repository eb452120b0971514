//! What comes back: answers read, judged and recorded.

use super::clock::now_ns;
use super::conn::{Role, State};
use super::connect::book_of;
use super::failures::explain;
use super::plan::{Plan, Ready};
use super::reactor::{ConnId, Happened, is_hangup};
use super::receiving::{READ_BYTES, Received};
use super::slot::Slot;
use super::turn::Timer;
use crate::check::Mismatch;
use crate::record::Failure;
use crate::schedule::Ask;

/// Up to this length (`TCP_MSS_DEFAULT`), the kernel acknowledges an answer that came in several
/// segments when it is read; longer ones when they arrive.
const ACKED_WHEN_READ_BYTES: u64 = 536;
/// How often a slow reader reads.
const SLOW_READS_PER_S: u32 = 10;

/// What a slow reader takes at a time.
pub fn slow_read_bytes(plan: &Plan) -> usize {
    let rate = plan.order.load.slow_readers.map_or(0, |slow| slow.bytes_per_s);
    (rate.div_ceil(SLOW_READS_PER_S) as usize).min(READ_BYTES)
}

impl Slot<'_> {
    /// Reads until the socket is empty or the answer complete.
    pub fn on_readable(&mut self, happened: Happened, seen_ns: u64) {
        let id = happened.id;
        let slow = self.reactor.conns[id].role == Role::Slow;
        if slow && self.reactor.conns[id].paused {
            return;
        }
        let hangup = is_hangup(happened.flags) && !slow;
        let mut done_ns = seen_ns;
        loop {
            let conn = &mut self.reactor.conns[id];
            let Some(ask) = conn.ask else { return };
            if done_ns < conn.since_ns {
                done_ns = now_ns();
            }
            let memory = &mut self.memory[ask.request];
            let defers = self.plan.asks_at_once && !hangup;
            let received = conn.receive(&mut self.reactor.scratch, memory, defers);
            if conn.first_byte_ns == 0 && conn.response.has_begun() {
                conn.first_byte_ns = done_ns;
            }
            match received {
                Received::Nothing => return,
                Received::Part { .. } if slow => return self.pause(id),
                Received::Part { drained } if drained && !hangup => return,
                // More may have come since the wait ended.
                Received::Part { .. } => done_ns = now_ns(),
                Received::Answer { drained } => {
                    self.answered(id, done_ns, hangup);
                    self.reactor.conns[id].discard(&mut self.reactor.scratch);
                    if drained || self.reactor.conns[id].state != State::Busy {
                        return;
                    }
                    done_ns = now_ns();
                }
                Received::Malformed(malformed) => {
                    return self.failed(id, Failure::Malformed, &malformed.to_string());
                }
                Received::Closed => return self.on_closed(id, done_ns),
                Received::Reset(error) => {
                    self.count_server_closed(id);
                    return self.failed(id, Failure::Reset, &format!("connection lost: {error}"));
                }
            }
        }
    }

    fn pause(&mut self, id: ConnId) {
        self.reactor.conns[id].paused = true;
        self.at(self.now_ns + 1_000_000_000 / u64::from(SLOW_READS_PER_S), Timer::Read(id));
    }

    /// The server ended the connection while we wait for an answer.
    fn on_closed(&mut self, id: ConnId, done_ns: u64) {
        let conn = &mut self.reactor.conns[id];
        if conn.response.end_of_stream() {
            self.answered(id, done_ns, true);
            return;
        }
        let begun = conn.response.has_begun();
        self.count_server_closed(id);
        if begun {
            self.failed(id, Failure::Truncated, "closed in the middle of the answer");
        } else {
            self.failed(id, Failure::Reset, "closed without an answer");
        }
    }

    fn answered(&mut self, id: ConnId, done_ns: u64, hangup: bool) {
        let conn = &mut self.reactor.conns[id];
        let Some(ask) = conn.ask.take() else { return };
        let request = &self.plan.requests[ask.request];
        let (status, body_bytes) = (conn.response.status(), conn.response.body_bytes());
        let hash = conn.hash.take().map(|hash| *hash);
        let bytes = conn.response.head_bytes() + body_bytes;
        if conn.first_byte_ns != done_ns && bytes <= ACKED_WHEN_READ_BYTES {
            self.memory[ask.request].in_pieces = true;
        }
        let mismatch = request.expectation.judge(status, body_bytes, hash);
        let stays = conn.response.keep_alive() && !hangup && !conn.last && conn.is_sent(request);
        if conn.role != Role::Idle {
            conn.strikes = 0;
        }
        conn.keep_cookies();
        if self.draining {
            self.book(id).drained += u64::from(mismatch.is_none());
        } else {
            self.record(id, ask, request, done_ns, mismatch);
        }
        if stays {
            self.reactor.conns[id].state = State::Idle;
        } else {
            self.count_server_closed(id);
            // Closing a socket with unread bytes would reset the connection.
            self.reactor.conns[id].discard(&mut self.reactor.scratch);
            self.reactor.conns[id].close();
        }
        self.finish(id, done_ns);
    }

    fn record(
        &mut self,
        id: ConnId,
        ask: Ask,
        request: &Ready,
        done_ns: u64,
        mismatch: Option<Mismatch>,
    ) {
        let conn = &self.reactor.conns[id];
        let book = book_of(conn.role, &mut self.recorder, &mut self.beside);
        book.by_status[usize::from(conn.response.status())] += 1;
        book.head_bytes += conn.response.head_bytes();
        book.body_bytes += conn.response.body_bytes();
        if let Some(mismatch) = mismatch {
            book.fail(match mismatch {
                Mismatch::Status => Failure::Status,
                Mismatch::BodyBytes | Mismatch::BodySha256 => Failure::Body,
            });
            if !book.samples.is_full() {
                let (status, bytes) = (conn.response.status(), conn.response.body_bytes());
                let read = self.reactor.scratch.last_read();
                book.samples.keep(explain(mismatch, request, status, bytes, read));
            }
            return;
        }
        let from_ns = self.plan.is_open().then(|| ask.due_ns.unwrap_or(conn.since_ns));
        book.complete(conn.since_ns, conn.first_byte_ns, done_ns, from_ns);
    }
}
