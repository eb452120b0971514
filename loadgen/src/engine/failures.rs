//! Requests that got no sound answer, and what people are told about failures.

use super::conn::{Role, State};
use super::connect::book_of;
use super::plan::Ready;
use super::reactor::ConnId;
use super::slot::Slot;
use crate::check::Mismatch;
use crate::record::Failure;

const SHOWN_BYTES: usize = 60;

impl Slot<'_> {
    /// A request got no answer with valid framing: it is counted and its connection closed.
    pub fn failed(&mut self, id: ConnId, failure: Failure, why: &str) {
        let conn = &mut self.reactor.conns[id];
        let ask = conn.ask.take();
        conn.close();
        if conn.role != Role::Idle {
            conn.strikes += 1;
        }
        if !self.draining {
            let book = book_of(conn.role, &mut self.recorder, &mut self.beside);
            book.fail(failure);
            if let Some(ask) = ask
                && !book.samples.is_full()
            {
                let text = format!("{}: {why}", self.plan.requests[ask.request].url);
                let read: &[u8] = match failure {
                    Failure::Malformed => self.reactor.scratch.last_read(),
                    _ => &[],
                };
                book.samples.keep(with_bytes(text, read));
            }
        }
        self.finish(id, self.now_ns);
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
            let from_ns = conn.ask.and_then(|ask| ask.due_ns).unwrap_or(conn.since_ns);
            let waited_ns = self.now_ns.saturating_sub(from_ns);
            self.book(id).waited.record(waited_ns);
        }
        let conn = &self.reactor.conns[id];
        let bytes = conn.response.head_bytes() + conn.response.body_bytes();
        let why = format!("no full answer within {seconds} s ({bytes} bytes came)");
        self.failed(id, Failure::Timeout, &why);
    }
}

/// What is wrong with an answer, and how it begins.
pub fn explain(
    mismatch: Mismatch,
    request: &Ready,
    status: u16,
    body_bytes: u64,
    read: &[u8],
) -> String {
    let expected = &request.expectation;
    let text = match mismatch {
        Mismatch::Status => {
            format!("{}: status {status} instead of {}", request.url, expected.status_text())
        }
        Mismatch::BodyBytes => {
            let wanted = expected.body_bytes().unwrap_or_default();
            format!("{}: body of {body_bytes} bytes instead of {wanted}", request.url)
        }
        Mismatch::BodySha256 => format!("{}: body with another SHA-256", request.url),
    };
    with_bytes(text, read)
}

/// Appends the beginning of what was read, printable.
fn with_bytes(text: String, read: &[u8]) -> String {
    if read.is_empty() {
        return text;
    }
    let shown = &read[..read.len().min(SHOWN_BYTES)];
    format!("{text}; read: {}", shown.escape_ascii())
}
