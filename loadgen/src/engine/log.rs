//! A log of requests, each by itself: all of them, or some.

use std::num::NonZeroU32;
use std::sync::mpsc::Sender;

use super::flight::{Flight, Logged};
use super::windows::ThreadReport;

/// Requests that are handed over at a time.
const HANDFUL: usize = 4096;

/// What a thread keeps of the requests that it logs, until it hands them over.
#[derive(Debug)]
pub struct RequestLog {
    every: u32,
    /// Requests since one was logged.
    passed: u32,
    start_ns: u64,
    /// Number of this thread's first connection among all.
    first_connection: usize,
    kept: Vec<Logged>,
    reports: Sender<ThreadReport>,
}

/// What became of a request.
#[derive(Debug, Clone, Copy)]
pub struct Fate {
    /// 0 where there was no answer.
    pub status: u16,
    pub head_bytes: u64,
    pub body_bytes: u64,
    pub first_byte_ns: Option<u64>,
    pub end_ns: u64,
    /// What is wrong, as it is counted; of what has no answer that it has none.
    pub failure: Option<&'static str>,
}

impl Fate {
    pub fn without_answer(end_ns: u64, failure: &'static str) -> Fate {
        Fate {
            status: 0,
            head_bytes: 0,
            body_bytes: 0,
            first_byte_ns: None,
            end_ns,
            failure: Some(failure),
        }
    }
}

impl RequestLog {
    /// Logs the first request and each `every`-th after it, with times after `start_ns`.
    pub fn new(
        every: NonZeroU32,
        start_ns: u64,
        first_connection: usize,
        reports: Sender<ThreadReport>,
    ) -> Self {
        let every = every.get();
        RequestLog {
            every,
            passed: every - 1,
            start_ns,
            first_connection,
            kept: Vec::new(),
            reports,
        }
    }

    /// A request over one of the thread's connections has ended.
    pub fn ended(&mut self, flight: &Flight, connection: usize, fate: Fate) {
        self.passed += 1;
        if self.passed < self.every {
            return;
        }
        self.passed = 0;
        let after = |at_ns: u64| at_ns.saturating_sub(self.start_ns);
        self.kept.push(Logged {
            request: flight.planned.request,
            connection: self.first_connection + connection,
            due_ns: flight.planned.due_ns.map(after),
            sent_ns: flight.is_counted().then(|| after(flight.first_sent_ns)),
            first_byte_ns: fate.first_byte_ns.map(after),
            end_ns: after(fate.end_ns),
            status: fate.status,
            head_bytes: fate.head_bytes,
            body_bytes: fate.body_bytes,
            failure: fate.failure,
        });
        if self.kept.len() >= HANDFUL {
            self.hand_over();
        }
    }

    pub fn hand_over(&mut self) {
        if !self.kept.is_empty() {
            // The engine listens until it has heard of the end.
            let _ = self.reports.send(ThreadReport::Logged(std::mem::take(&mut self.kept)));
        }
    }
}
