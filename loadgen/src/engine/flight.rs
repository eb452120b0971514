//! A request on its way, and what came of it.

use sha2::Sha256;

use crate::engine::schedule::PlannedRequest;
use crate::events::EventStream;
use crate::record::Failure;

/// A request that a lane has taken on.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    pub planned: PlannedRequest,
    /// Which user of the slot waits for the answer.
    pub lane: usize,
    /// Since when it waits for a connection, or for a stream of one.
    pub waits_since_ns: u64,
    /// When it was sent last; 0 while it isn't on its way.
    pub sent_ns: u64,
    /// When it was sent first: it counts as sent once, however often it is asked again, and its
    /// times begin here. 0 before.
    pub first_sent_ns: u64,
    /// It was asked again because its connection had ended without an answer.
    pub retried: bool,
}

impl Flight {
    pub fn new(lane: usize, planned: PlannedRequest, now_ns: u64) -> Flight {
        Flight {
            planned,
            lane,
            waits_since_ns: now_ns,
            sent_ns: 0,
            first_sent_ns: 0,
            retried: false,
        }
    }

    /// It counts as sent, and what becomes of it isn't known yet.
    pub fn is_counted(&self) -> bool {
        self.first_sent_ns > 0
    }

    /// When its times begin: it was due or, where no timetable has it, sent.
    pub fn times_from_ns(&self) -> u64 {
        self.planned.due_ns.unwrap_or(self.first_sent_ns)
    }

    /// It is to be sent once more.
    pub fn again(self, now_ns: u64) -> Flight {
        Flight { waits_since_ns: now_ns, sent_ns: 0, ..self }
    }
}

/// An answer with sound framing.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head_bytes: u64,
    pub body_bytes: u64,
    /// Given when the body was to be checked.
    pub hash: Option<Box<Sha256>>,
    /// What is wrong though the status is fine: gRPC says it, or the user misses something.
    pub fault: Option<(Failure, String)>,
    /// Of gRPC, where it is a number.
    pub grpc_status: Option<u16>,
    /// Where it is a stream of them.
    pub events: Option<Box<EventStream>>,
    pub first_byte_ns: u64,
    pub done_ns: u64,
}

/// An answer, whole.
#[derive(Debug, Clone)]
pub struct Traced {
    /// The plan's request.
    pub request: usize,
    pub status: u16,
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    /// By name: what the user took from it.
    pub captured: Vec<(String, Vec<u8>)>,
    /// What is wrong with it.
    pub failure: Option<String>,
}

/// A request that has ended, as a line of a log has it. Times are after the load's beginning.
#[derive(Debug, Clone)]
pub struct Logged {
    /// The plan's request.
    pub request: usize,
    /// Number of the connection among those of the load, over which it went.
    pub connection: usize,
    pub due_ns: Option<u64>,
    /// None where there was no connection to send it over.
    pub sent_ns: Option<u64>,
    pub first_byte_ns: Option<u64>,
    /// When its answer was whole, or it had failed.
    pub end_ns: u64,
    /// 0 where there was no answer.
    pub status: u16,
    pub head_bytes: u64,
    pub body_bytes: u64,
    pub failure: Option<&'static str>,
}
