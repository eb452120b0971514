//! What becomes of requests, entered in the books.
//!
//! A request is counted as sent when its fate is known, so that sent = completed + failed +
//! unanswered holds by construction, also for requests that had to be asked again.

use sha2::Sha256;

use super::slot::Slot;
use crate::check::Mismatch;
use crate::engine::failures::explain;
use crate::record::{Failure, Recorder};
use crate::schedule::Ask;

/// An answer with sound framing.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head_bytes: u64,
    pub body_bytes: u64,
    /// Given when the body was to be checked.
    pub hash: Option<Sha256>,
    pub first_byte_ns: u64,
    pub done_ns: u64,
    /// The connection may be used again.
    pub stays: bool,
}

/// What became of one try to have a request answered; texts are for people.
#[derive(Debug)]
pub enum Outcome {
    Answered(Answer),
    Failed(Failure, String),
    /// The connection ended before anything was sent.
    Unsent,
    /// The server said that it had not seen the request.
    Unprocessed(String),
}

/// A request that a lane has taken on.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    pub ask: Ask,
    /// Once it is sent: when, and whether its connection had carried another one before.
    pub sent: Option<(u64, bool)>,
}

impl Slot {
    /// A lane has taken a request on.
    pub fn take_on(&self, lane: usize, ask: Ask) {
        self.flights.borrow_mut()[lane] = Some(Flight { ask, sent: None });
    }

    /// A lane's request is leaving.
    pub fn sent(&self, lane: usize, reused: bool) {
        if let Some(flight) = &mut self.flights.borrow_mut()[lane] {
            flight.sent = Some((crate::engine::clock::now_ns(), reused));
        }
    }

    /// A lane's request did not leave after all.
    pub fn unsent(&self, lane: usize) {
        if let Some(flight) = &mut self.flights.borrow_mut()[lane] {
            flight.sent = None;
        }
    }

    /// Results still count.
    pub fn counts(&self) -> bool {
        !self.draining.get()
    }

    /// A lane's request was answered.
    pub fn answered(&self, lane: usize, answer: Answer) {
        let Some(flight) = self.flights.borrow_mut()[lane].take() else { return };
        let Some((sent_ns, reused)) = flight.sent else { return };
        let request = &self.plan.requests[flight.ask.request];
        let mismatch = request.expectation.judge(answer.status, answer.body_bytes, answer.hash);
        let mut recorder = self.recorder.borrow_mut();
        if self.draining.get() || answer.done_ns >= self.end_ns.get() {
            if !self.draining.get() {
                leave_unanswered(&mut recorder, flight, reused, self.end_ns.get());
            }
            recorder.drained += u64::from(mismatch.is_none());
            return;
        }
        count_sent(&mut recorder, reused);
        recorder.by_status[usize::from(answer.status)] += 1;
        recorder.head_bytes += answer.head_bytes;
        recorder.body_bytes += answer.body_bytes;
        match mismatch {
            Some(mismatch) => {
                recorder.fail(match mismatch {
                    Mismatch::Status => Failure::Status,
                    Mismatch::BodyBytes | Mismatch::BodySha256 => Failure::Body,
                });
                if !recorder.samples.is_full() {
                    let (status, bytes) = (answer.status, answer.body_bytes);
                    let scratch = self.scratch.borrow();
                    let text = explain(mismatch, request, status, bytes, scratch.last_read());
                    recorder.samples.keep(text);
                }
            }
            None => {
                let from_ns = self.plan.is_open().then(|| flight.ask.due_ns.unwrap_or(sent_ns));
                recorder.complete(sent_ns, answer.first_byte_ns, answer.done_ns, from_ns);
            }
        }
    }

    /// A lane's request failed.
    pub fn failed(&self, lane: usize, failure: Failure, why: &str, now_ns: u64) {
        let Some(flight) = self.flights.borrow_mut()[lane].take() else { return };
        if self.draining.get() {
            return;
        }
        let reused = flight.sent.is_some_and(|(_, reused)| reused);
        let mut recorder = self.recorder.borrow_mut();
        count_sent(&mut recorder, reused);
        recorder.fail(failure);
        if failure == Failure::Timeout {
            let sent_ns = flight.sent.map_or(now_ns, |(sent_ns, _)| sent_ns);
            let from_ns = flight.ask.due_ns.unwrap_or(sent_ns);
            recorder.waited.record(now_ns.saturating_sub(from_ns));
        }
        let url = &self.plan.requests[flight.ask.request].url;
        recorder.samples.keep(format!("{url}: {why}"));
    }

    /// At the slot's end everything in flight is unanswered; what was due and not sent is
    /// counted. Tells which lanes have something in flight.
    pub fn settle(&self, end_ns: u64) -> Vec<bool> {
        self.draining.set(true);
        let mut recorder = self.recorder.borrow_mut();
        let flights = self.flights.borrow();
        let settled = flights.iter().map(|flight| match flight {
            None => false,
            Some(flight) => match flight.sent {
                Some((_, reused)) => {
                    leave_unanswered(&mut recorder, *flight, reused, end_ns);
                    true
                }
                None => {
                    if let Some(due_ns) = flight.ask.due_ns.filter(|due_ns| *due_ns < end_ns) {
                        recorder.unsent += 1;
                        recorder.waited.record(end_ns - due_ns);
                    }
                    false
                }
            },
        });
        settled.collect()
    }
}

fn count_sent(recorder: &mut Recorder, reused: bool) {
    recorder.sent += 1;
    recorder.reused += u64::from(reused);
}

fn leave_unanswered(recorder: &mut Recorder, flight: Flight, reused: bool, end_ns: u64) {
    count_sent(recorder, reused);
    recorder.unanswered += 1;
    if let Some(due_ns) = flight.ask.due_ns {
        recorder.waited.record(end_ns.saturating_sub(due_ns));
    }
}
