//! What goes wrong with requests over HTTP/2, in the words of HTTP/1.1.

use std::io;

use super::code::{self, Fault};
use crate::record::Failure;

/// Why a request got no sound answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Failed(Failure),
    /// The server refused it (`REFUSED_STREAM`).
    Refused,
    /// The server reset its stream.
    Reset,
    /// The connection ended before anything of the answer came.
    Unanswered,
    /// The server had announced its end before it saw the request: it may be asked again
    /// (RFC 9113 section 6.8).
    Unprocessed,
}

/// The same, and in words, for people.
pub type Explained = (Trouble, String);

impl Trouble {
    pub fn failure(self) -> Failure {
        match self {
            Trouble::Failed(failure) => failure,
            Trouble::Refused | Trouble::Reset | Trouble::Unanswered | Trouble::Unprocessed => {
                Failure::Reset
            }
        }
    }

    /// What came breaks a rule.
    pub fn malformed(fault: Fault) -> Explained {
        (Trouble::Failed(Failure::Malformed), format!("the answer is not HTTP/2: {}", fault.what))
    }

    /// The body ended before its Content-Length did.
    pub fn truncated() -> Explained {
        let why = "the body is not as long as Content-Length says";
        (Trouble::Failed(Failure::Truncated), why.into())
    }

    /// The server reset the stream.
    pub fn reset(reason: u32) -> Explained {
        match reason {
            code::REFUSED_STREAM => {
                (Trouble::Refused, "the server refused the stream (REFUSED_STREAM)".into())
            }
            _ => (Trouble::Reset, format!("the server reset the stream ({})", code::name(reason))),
        }
    }

    pub fn unprocessed(reason: u32) -> Explained {
        let reported = match reason {
            code::NO_ERROR => "GOAWAY".into(),
            _ => format!("GOAWAY, {}", code::name(reason)),
        };
        let why = format!("the server ended the connection ({reported}) before it saw the request");
        (Trouble::Unprocessed, why)
    }
}

/// Why a connection takes no more requests.
#[derive(Debug)]
pub enum ConnectionEnd {
    /// We are done with it.
    Retired,
    /// The server announced its end; what it has begun it may still answer.
    GoAway,
    /// It is of no use any more.
    Lost(Lost),
}

/// How a connection was lost.
#[derive(Debug)]
pub enum Lost {
    /// The server closed it.
    Closed,
    Broken(io::Error),
    /// What came breaks a rule, so that nothing can be made of what follows.
    Fault(Fault),
}

impl Lost {
    /// What it means for a request; `begun`: the head of its answer had come.
    pub fn explain(&self, begun: bool) -> Explained {
        match self {
            Lost::Fault(fault) => Trouble::malformed(*fault),
            Lost::Closed if !begun => (Trouble::Unanswered, "closed without an answer".into()),
            Lost::Broken(error) if !begun => {
                (Trouble::Unanswered, format!("closed without an answer: {error}"))
            }
            Lost::Broken(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                let why = format!("reset in the middle of the answer: {error}");
                (Trouble::Failed(Failure::Reset), why)
            }
            Lost::Closed | Lost::Broken(_) => {
                (Trouble::Failed(Failure::Truncated), "closed in the middle of the answer".into())
            }
        }
    }
}
