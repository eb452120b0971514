//! A request on its way, and what came of it.

use sha2::Sha256;

use crate::schedule::Ask;

/// A request that a lane has taken on.
#[derive(Debug, Clone, Copy)]
pub struct Flight {
    pub ask: Ask,
    /// Which user of the slot waits for the answer.
    pub lane: usize,
    /// When it was sent; 0 while it isn't.
    pub sent_ns: u64,
    /// It was counted as sent: once, however often it is asked again.
    pub counted: bool,
}

impl Flight {
    pub fn new(lane: usize, ask: Ask) -> Flight {
        Flight { ask, lane, sent_ns: 0, counted: false }
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
    pub first_byte_ns: u64,
    pub done_ns: u64,
}
