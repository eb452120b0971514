//! What comes back: answers judged and recorded, failures counted.

use super::clock::now_ns;
use super::conn::{Conn, Received, State};
use super::plan::Ready;
use super::reactor::{ConnId, Happened, is_hangup};
use super::slot::Slot;
use crate::check::Mismatch;
use crate::record::Failure;

impl Slot<'_> {
    /// Reads until the socket is empty or the answer complete.
    pub fn on_readable(&mut self, happened: Happened, seen_ns: u64) {
        let id = happened.id;
        let hangup = is_hangup(happened.flags);
        let mut done_ns = seen_ns;
        loop {
            let conn = &mut self.reactor.conns[id];
            let Some(ask) = conn.ask else { return };
            if done_ns < conn.since_ns {
                done_ns = now_ns();
            }
            let cache = &mut self.memory[ask.request].head;
            let received = conn.receive(&mut self.reactor.scratch, cache);
            if conn.first_byte_ns == 0 && conn.response.has_begun() {
                conn.first_byte_ns = done_ns;
            }
            match received {
                Received::Nothing => return,
                Received::Part { drained } if drained && !hangup => return,
                // More may have come since the wait ended.
                Received::Part { .. } => done_ns = now_ns(),
                Received::Answer { drained } => {
                    self.answered(id, done_ns, hangup);
                    if drained || self.reactor.conns[id].state != State::Busy {
                        return;
                    }
                    done_ns = now_ns();
                }
                Received::Malformed(malformed) => {
                    self.failed(id, Failure::Malformed, &malformed.to_string());
                    return;
                }
                Received::Closed => {
                    self.on_closed(id, done_ns);
                    return;
                }
                Received::Reset(error) => {
                    self.closed_by_server(id);
                    self.failed(id, Failure::Reset, &format!("connection lost: {error}"));
                    return;
                }
            }
        }
    }

    /// The server ended the connection while we wait for an answer.
    fn on_closed(&mut self, id: ConnId, done_ns: u64) {
        let conn = &mut self.reactor.conns[id];
        if conn.response.end_of_stream() {
            self.answered(id, done_ns, true);
            return;
        }
        let begun = conn.response.has_begun();
        self.closed_by_server(id);
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
        let mismatch = request.expectation.judge(status, body_bytes, hash);
        let stays = conn.response.keep_alive() && !hangup && !conn.last && conn.is_sent(request);
        conn.strikes = 0;
        if self.draining {
            self.recorder.drained += u64::from(mismatch.is_none());
        } else {
            self.record(id, request, done_ns, mismatch);
        }
        if stays {
            self.reactor.conns[id].state = State::Idle;
        } else {
            self.closed_by_server(id);
            self.reactor.conns[id].close();
        }
        self.free(self.reactor.conns[id].lane as usize);
    }

    fn record(&mut self, id: ConnId, request: &Ready, done_ns: u64, mismatch: Option<Mismatch>) {
        let conn = &self.reactor.conns[id];
        let recorder = &mut self.recorder;
        recorder.by_status[usize::from(conn.response.status())] += 1;
        recorder.head_bytes += conn.response.head_bytes();
        recorder.body_bytes += conn.response.body_bytes();
        let Some(mismatch) = mismatch else {
            recorder.completed += 1;
            let service_ns = done_ns.saturating_sub(conn.since_ns);
            if conn.first_byte_ns == done_ns {
                recorder.whole.record(service_ns);
            } else {
                recorder.first_byte.record(conn.first_byte_ns.saturating_sub(conn.since_ns));
                recorder.last_byte.record(service_ns);
            }
            return;
        };
        recorder.fail(match mismatch {
            Mismatch::Status => Failure::Status,
            Mismatch::BodyBytes | Mismatch::BodySha256 => Failure::Body,
        });
        if !recorder.samples.is_full() {
            let text = explain(mismatch, request, conn);
            recorder.samples.keep(with_bytes(text, self.reactor.scratch.last_read()));
        }
    }

    /// A request got no valid framing: it is counted and its connection closed.
    pub fn failed(&mut self, id: ConnId, failure: Failure, why: &str) {
        let conn = &mut self.reactor.conns[id];
        let ask = conn.ask.take();
        conn.close();
        conn.strikes += 1;
        let lane = conn.lane as usize;
        if !self.draining {
            self.recorder.fail(failure);
            if let Some(ask) = ask
                && !self.recorder.samples.is_full()
            {
                let text = format!("{}: {why}", self.plan.requests[ask.request].url);
                let read = match failure {
                    Failure::Malformed => self.reactor.scratch.last_read(),
                    _ => &[],
                };
                self.recorder.samples.keep(with_bytes(text, read));
            }
        }
        self.free(lane);
    }

    /// A connect or a request took longer than the timeout.
    pub fn timed_out(&mut self, id: ConnId) {
        let conn = &self.reactor.conns[id];
        let seconds = self.plan.order.load.timeout_s;
        if conn.state == State::Connecting {
            self.connect_failed(id, &format!("not connected within {seconds} s"));
            return;
        }
        if !self.draining {
            self.recorder.timed_out.record(self.now_ns.saturating_sub(conn.since_ns));
        }
        let bytes = conn.response.head_bytes() + conn.response.body_bytes();
        let why = format!("no full answer within {seconds} s ({bytes} bytes came)");
        self.failed(id, Failure::Timeout, &why);
    }

    /// Counts a connection that the server closed though we wanted to use it again.
    pub fn closed_by_server(&mut self, id: ConnId) {
        if !self.reactor.conns[id].last && !self.draining {
            self.recorder.server_closed += 1;
        }
    }
}

fn explain(mismatch: Mismatch, request: &Ready, conn: &Conn) -> String {
    let expected = &request.expectation;
    match mismatch {
        Mismatch::Status => {
            let status = conn.response.status();
            format!("{}: status {status} instead of {}", request.url, expected.status_text())
        }
        Mismatch::BodyBytes => {
            let wanted = expected.body_bytes().unwrap_or_default();
            let bytes = conn.response.body_bytes();
            format!("{}: body of {bytes} bytes instead of {wanted}", request.url)
        }
        Mismatch::BodySha256 => format!("{}: body with another SHA-256", request.url),
    }
}

/// Appends the beginning of what was read, printable.
fn with_bytes(text: String, read: &[u8]) -> String {
    if read.is_empty() {
        return text;
    }
    let shown = &read[..read.len().min(60)];
    format!("{text}; read: {}", shown.escape_ascii())
}
