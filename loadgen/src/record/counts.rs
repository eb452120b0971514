//! What is counted.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use derive_more::AddAssign;
use enum_map::{Enum, EnumMap};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The ways in which a request can fail; each failed request has exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Failure {
    /// No connection: refused, unreachable or not in time. Not a sent request.
    Connect,
    /// No full answer within the timeout.
    Timeout,
    /// The connection ended before the answer's first byte, or was reset.
    Reset,
    /// The connection was closed in the middle of the answer.
    Truncated,
    /// What came is not HTTP, or not WebSocket.
    Malformed,
    /// An answer with a status that was not expected.
    Status,
    /// An answer whose body is not the expected one.
    Body,
}

impl Failure {
    /// As results have it.
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
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct FailureCounts(EnumMap<Failure, u64>);

impl FailureCounts {
    pub fn count(&mut self, failure: Failure) {
        self.0[failure] += 1;
    }

    pub fn get(&self, failure: Failure) -> u64 {
        self.0[failure]
    }

    pub fn iter(&self) -> impl Iterator<Item = (Failure, u64)> {
        self.0.into_iter()
    }

    /// All failures, failed connects included.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Failures of requests that were sent.
    pub fn of_sent(&self) -> u64 {
        self.total() - self.get(Failure::Connect)
    }
}

impl AddAssign for FailureCounts {
    fn add_assign(&mut self, other: Self) {
        other.iter().for_each(|(failure, count)| self.0[failure] += count);
    }
}

const MOST_SAMPLES: usize = 5;

/// A few failures in words, for people.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Samples(Vec<String>);

impl Samples {
    pub fn is_full(&self) -> bool {
        self.0.len() >= MOST_SAMPLES
    }

    /// Keeps `text` unless there are enough, or the same one is there already.
    pub fn keep(&mut self, text: String) {
        if !self.is_full() && !self.0.contains(&text) {
            self.0.push(text);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &String> {
        self.0.iter()
    }
}

impl AddAssign for Samples {
    fn add_assign(&mut self, other: Self) {
        other.0.into_iter().for_each(|text| self.keep(text));
    }
}

/// Handshakes of TLS.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, AddAssign)]
pub struct HandshakeCounts {
    #[serde(rename = "full_handshakes")]
    pub full: u64,
    #[serde(rename = "resumed_handshakes")]
    pub resumed: u64,
}

/// What HTTP/2 and 3 add to the record.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, AddAssign)]
pub struct StreamCounts {
    /// The fewest streams at a time that a server allowed; absent when no connection was made, and
    /// over HTTP/3 where it allowed as many as were asked for.
    #[serde(default, rename = "streams_allowed", skip_serializing_if = "Fewest::is_none")]
    pub allowed: Fewest,
    /// Connections whose end the server announced.
    pub go_aways: u64,
    /// Requests asked again, because the server said it had not seen them, or closed the connection
    /// before it answered; each is counted once among the sent ones.
    pub retried: u64,
    #[serde(rename = "refused_streams")]
    pub refused: u64,
    /// Streams the server reset for other reasons.
    #[serde(rename = "reset_streams")]
    pub reset: u64,
}

/// The least of what was seen, if anything was.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Fewest(pub Option<u32>);

impl Fewest {
    fn is_none(&self) -> bool {
        self.0.is_none()
    }
}

impl AddAssign for Fewest {
    fn add_assign(&mut self, other: Self) {
        self.0 = self.0.into_iter().chain(other.0).min();
    }
}

/// How many answers had each status, or connections each code.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Statuses(BTreeMap<u16, u64>);

impl Statuses {
    #[inline]
    pub fn count(&mut self, status: u16) {
        *self.0.entry(status).or_default() += 1;
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&u16, &u64)> {
        self.0.iter()
    }
}

impl<'de> Deserialize<'de> for Statuses {
    /// Keys of JSON are texts, also where they are numbers.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let named = BTreeMap::<String, u64>::deserialize(from)?;
        let numbered = named
            .into_iter()
            .map(|(name, count)| name.parse::<u16>().map(|status| (status, count)));
        numbered.collect::<Result<_, _>>().map(Statuses).map_err(D::Error::custom)
    }
}

impl AddAssign for Statuses {
    fn add_assign(&mut self, other: Self) {
        other.0.into_iter().for_each(|(status, count)| *self.0.entry(status).or_default() += count);
    }
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, AddAssign)]
pub struct ByteCounts {
    pub head: u64,
    pub body: u64,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, AddAssign)]
pub struct ConnectionCounts {
    pub opened: u64,
    pub reused_requests: u64,
    /// Attempts that failed as this client had no local port left.
    pub without_port: u64,
}

/// Requests of the load.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, AddAssign)]
pub struct RequestCounts {
    pub sent: u64,
    pub completed: u64,
    /// In flight when the window of the slot began, and when it ended.
    pub carried: u64,
    pub unanswered: u64,
    /// Of the unanswered, those answered validly afterwards.
    pub drained: u64,
    /// Of the unanswered, streams that were left when the duration was over.
    pub unfinished: u64,
    /// Asked again, because the connection had ended without a byte of the answer. Each counts once
    /// among the sent ones.
    pub retried: u64,
    /// Open loop: due, but not sent before the end.
    pub unsent: u64,
    /// Open loop: due, and dropped because too many waited for a free connection.
    pub dropped: u64,
    /// Open loop: the most that waited at a time.
    pub most_waiting: u64,
}

/// What came of requests.
#[derive(Debug, Clone, Default, Serialize, Deserialize, AddAssign)]
pub struct Seen {
    pub by_status: Statuses,
    /// Those of gRPC, which has its own.
    #[serde(default, skip_serializing_if = "Statuses::is_empty")]
    pub grpc_by_status: Statuses,
    /// WebSockets that servers ended, by the code they gave.
    #[serde(default, skip_serializing_if = "Statuses::is_empty")]
    pub by_close_code: Statuses,
    pub failures: FailureCounts,
    pub failure_samples: Samples,
    pub bytes: ByteCounts,
    pub connections: ConnectionCounts,
}

/// How often something happened.
#[derive(Debug, Clone, Default, AddAssign)]
pub struct Counts {
    pub requests: RequestCounts,
    pub seen: Seen,
    /// Connections the server closed although we wanted to go on using them.
    pub server_closed: u64,
    /// Threads waited, and went on.
    pub wake_ups: u64,
    pub handshakes: HandshakeCounts,
    pub streams: StreamCounts,
}
