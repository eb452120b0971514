//! What goes wrong with requests over HTTP/2, in the words of HTTP/1.1.

use std::io;

use h2::{Error, Reason};

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

impl Trouble {
    /// `begun`: the head of the answer had come; `lacking`: its body was shorter than its
    /// Content-Length until then.
    pub fn of(error: &Error, begun: bool, lacking: bool) -> Trouble {
        if error.is_go_away() && error.is_remote() {
            return Trouble::Unprocessed;
        }
        if error.is_reset() && error.is_remote() {
            return match error.reason() {
                Some(Reason::REFUSED_STREAM) => Trouble::Refused,
                _ => Trouble::Reset,
            };
        }
        if let Some(io) = error.get_io() {
            let reset = io.kind() == io::ErrorKind::ConnectionReset;
            return match begun {
                false => Trouble::Unanswered,
                true if reset => Trouble::Failed(Failure::Reset),
                true => Trouble::Failed(Failure::Truncated),
            };
        }
        // The library says the same of a body that is too short and of one that is too long;
        // the first is what happens.
        let short = error.is_reset() && error.reason() == Some(Reason::PROTOCOL_ERROR) && lacking;
        Trouble::Failed(if short { Failure::Truncated } else { Failure::Malformed })
    }

    pub fn failure(self) -> Failure {
        match self {
            Trouble::Failed(failure) => failure,
            Trouble::Refused | Trouble::Reset | Trouble::Unanswered | Trouble::Unprocessed => {
                Failure::Reset
            }
        }
    }

    /// In words, for people.
    pub fn explain(self, error: &Error) -> String {
        match self {
            Trouble::Failed(Failure::Truncated) if error.is_io() => {
                "closed in the middle of the answer".into()
            }
            Trouble::Failed(Failure::Truncated) => {
                "the body is not as long as Content-Length says".into()
            }
            Trouble::Unanswered => format!("closed without an answer: {error}"),
            Trouble::Failed(Failure::Reset) => {
                format!("reset in the middle of the answer: {error}")
            }
            Trouble::Failed(_) => format!("the answer is not HTTP/2: {error}"),
            Trouble::Refused => "the server refused the stream (REFUSED_STREAM)".into(),
            Trouble::Reset => format!("the server reset the stream: {error}"),
            Trouble::Unprocessed => {
                "the server ended the connection (GOAWAY) before it saw the request".into()
            }
        }
    }
}
