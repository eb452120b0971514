//! What answers a call.

/// How many messages do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    One,
    /// It is a stream of them, or nobody knows.
    Any,
}
