//! When the next request is due, and which one it is.

mod choice;
mod quota;

pub use choice::Choice;
pub use quota::{Quota, Share};

/// A request somebody is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Index into the plan's requests.
    pub request: usize,
    /// When it was due; in a closed loop that is when it is sent.
    pub due_ns: Option<u64>,
}

/// What a free user does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Now(Ask),
    /// All requests are given out.
    Exhausted,
}
