//! What goes wrong with requests over HTTP/3, in the words of HTTP/1.1.

use std::io;

use quinn_proto::ConnectionError;

use super::code::{self, Fault};
use crate::http2::trouble::{Explained, Trouble};
use crate::record::Failure;
use crate::shown::beginning;

/// How a connection was lost.
#[derive(Debug)]
pub enum Lost {
    Quic(ConnectionError),
    /// The system says that nobody is there.
    Broken(io::Error),
    /// What came breaks a rule of HTTP/3, so that nothing can be made of what follows.
    Fault(Fault),
}

impl Lost {
    /// What it means for a request; `begun`: the head of its answer had come.
    pub fn explain(&self, begun: bool) -> Explained {
        let Some(why) = self.words() else { return malformed(self.broken_rule()) };
        match begun {
            true => {
                let why = format!("lost in the middle of the answer: {why}");
                (Trouble::Failed(Failure::Truncated), why)
            }
            false => (Trouble::Unanswered, format!("lost without an answer: {why}")),
        }
    }

    /// Why it was lost, where the server broke no rule.
    pub fn words(&self) -> Option<String> {
        let said = |reason: &[u8]| match reason {
            [] => String::new(),
            text => format!(", \"{}\"", beginning(&String::from_utf8_lossy(text))),
        };
        let text = match self {
            Lost::Fault(_) | Lost::Quic(ConnectionError::TransportError(_)) => return None,
            Lost::Broken(error) => error.to_string(),
            Lost::Quic(ConnectionError::ApplicationClosed(close)) => {
                let name = code::name(close.error_code.into_inner());
                format!("the server closed the connection ({name}{})", said(&close.reason))
            }
            Lost::Quic(ConnectionError::ConnectionClosed(close)) => {
                let name = code::name_of_quic(close.error_code.into());
                format!("the server's QUIC closed the connection ({name}{})", said(&close.reason))
            }
            Lost::Quic(ConnectionError::Reset) => {
                "the server doesn't know the connection any more (stateless reset)".into()
            }
            Lost::Quic(ConnectionError::TimedOut) => "nothing came from the server for long".into(),
            Lost::Quic(ConnectionError::VersionMismatch) => {
                "the server speaks no version of QUIC that is known here (QUIC v1)".into()
            }
            Lost::Quic(error) => error.to_string(),
        };
        Some(text)
    }

    /// The rule that the server broke.
    pub fn broken_rule(&self) -> String {
        match self {
            Lost::Fault(fault) => fault.words(),
            Lost::Quic(ConnectionError::TransportError(error)) => {
                let name = code::name_of_quic(error.code.into());
                format!("the server breaks a rule of QUIC ({name}: {})", error.reason)
            }
            _ => String::new(),
        }
    }
}

/// What came breaks a rule.
pub fn malformed(rule: String) -> Explained {
    (Trouble::Failed(Failure::Malformed), format!("the answer is not HTTP/3: {rule}"))
}

/// The server reset the stream.
pub fn reset(reason: u64) -> Explained {
    match reason == u64::from(code::REQUEST_REJECTED) {
        true => (Trouble::Refused, "the server refused the request (H3_REQUEST_REJECTED)".into()),
        false => (Trouble::Reset, format!("the server reset the stream ({})", code::name(reason))),
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::ApplicationClose;

    use super::*;

    #[test]
    fn what_is_lost_has_its_reason() {
        let refused = Lost::Broken(io::ErrorKind::ConnectionRefused.into());
        let (trouble, why) = refused.explain(false);
        assert_eq!((trouble, trouble.failure()), (Trouble::Unanswered, Failure::Reset));
        assert!(why.contains("refused"), "{why}");
        let (trouble, why) = Lost::Quic(ConnectionError::Reset).explain(true);
        assert_eq!(trouble, Trouble::Failed(Failure::Truncated));
        assert!(why.contains("stateless reset"), "{why}");
        let (trouble, why) = Lost::Fault(Fault::unexpected("SETTINGS come twice")).explain(false);
        assert_eq!(trouble, Trouble::Failed(Failure::Malformed));
        assert!(why.ends_with("SETTINGS come twice (H3_FRAME_UNEXPECTED)"), "{why}");
    }

    #[test]
    fn a_reason_that_is_cut_says_so() {
        let close = |reason: String| {
            let close = ApplicationClose { error_code: 0u32.into(), reason: reason.into() };
            Lost::Quic(ConnectionError::ApplicationClosed(close)).words().expect("a reason")
        };
        assert!(close("x".repeat(100)).ends_with("xx\")"));
        assert!(close("x".repeat(101)).ends_with("xx…\")"));
    }

    #[test]
    fn streams_that_are_reset_have_their_code() {
        assert_eq!(reset(0x10b).0, Trouble::Refused);
        let (trouble, why) = reset(0x102);
        assert_eq!(trouble, Trouble::Reset);
        assert!(why.contains("H3_INTERNAL_ERROR"), "{why}");
    }
}
