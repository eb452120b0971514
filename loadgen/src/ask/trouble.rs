//! Why there is no response, or none that is whole.

use std::io;

use serde::Serialize;

use crate::engine::plan::Origin;
use crate::engine::reasons;
use crate::http2::trouble as http2;
use crate::record::Failure;

/// What went wrong, and why in words, for people.
#[derive(Debug)]
pub struct Trouble {
    pub kind: Kind,
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Nobody accepts a connection.
    Connect,
    /// The server's certificate is not to be trusted, so that nothing was said to it.
    Untrusted,
    /// There is no TLS, or not what is to be spoken over it.
    Tls,
    /// The connection ended before the server had the whole request.
    Untaken,
    /// The connection ended without a byte of the response.
    Closed,
    /// The connection ended before the response did.
    Cut,
    /// What came is no response.
    Malformed,
    /// The server reset the request's stream, though it had looked at it.
    Reset,
    /// The response wasn't whole in time.
    Late,
    /// The response is longer than it may be.
    Long,
}

impl Kind {
    pub fn with(self, why: impl Into<String>) -> Trouble {
        Trouble { kind: self, why: why.into() }
    }
}

impl Trouble {
    pub fn of_handshake(origin: &Origin, error: &io::Error) -> Trouble {
        match reasons::distrust(error) {
            Some(why) => Kind::Untrusted.with(why),
            None => Kind::Tls.with(reasons::no_tls(origin, error).0),
        }
    }

    /// A connection broke while a response was read, of which some had come or nothing.
    pub fn of_lost(error: &io::Error, has_begun: bool) -> Trouble {
        let (failure, why) = reasons::lost(error);
        match failure {
            Failure::Malformed => Kind::Malformed.with(why),
            _ if has_begun => Kind::Cut.with(why),
            _ => Kind::Closed.with(why),
        }
    }

    pub fn of_stream(trouble: http2::Trouble, why: String) -> Trouble {
        let kind = match trouble {
            http2::Trouble::Reset => Kind::Reset,
            http2::Trouble::Failed(Failure::Malformed) => Kind::Malformed,
            http2::Trouble::Failed(_) => Kind::Cut,
            http2::Trouble::Refused | http2::Trouble::Unanswered | http2::Trouble::Unprocessed => {
                Kind::Closed
            }
        };
        kind.with(why)
    }
}
