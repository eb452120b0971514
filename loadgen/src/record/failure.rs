//! The ways in which a request can fail.

/// Each failed request has exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No connection: refused, unreachable or not in time. Not a sent request.
    Connect,
    /// No full answer within the timeout.
    Timeout,
    /// The connection ended before the answer's first byte, or was reset.
    Reset,
    /// The connection was closed in the middle of the answer.
    Truncated,
    /// What came is not HTTP/1.1.
    Malformed,
    /// An answer with a status that was not expected.
    Status,
    /// An answer whose body is not the expected one.
    Body,
}

impl Failure {
    pub const ALL: [Failure; 7] = [
        Failure::Connect,
        Failure::Timeout,
        Failure::Reset,
        Failure::Truncated,
        Failure::Malformed,
        Failure::Status,
        Failure::Body,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Failure::Connect => "connect",
            Failure::Timeout => "timeout",
            Failure::Reset => "reset",
            Failure::Truncated => "truncated",
            Failure::Malformed => "malformed",
            Failure::Status => "status",
            Failure::Body => "body",
        }
    }
}

/// How many of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FailureCounts([u64; Failure::ALL.len()]);

impl FailureCounts {
    pub fn count(&mut self, failure: Failure) {
        self.0[failure as usize] += 1;
    }

    pub fn get(&self, failure: Failure) -> u64 {
        self.0[failure as usize]
    }

    /// All failures, failed connects included.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Failures of requests that were sent.
    pub fn of_sent(&self) -> u64 {
        self.total() - self.get(Failure::Connect)
    }

    pub fn add(&mut self, other: &FailureCounts) {
        for (sum, count) in self.0.iter_mut().zip(other.0) {
            *sum += count;
        }
    }
}
