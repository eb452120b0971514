//! What is counted and timed: one [`Recorder`] per thread and window, merged afterwards.

mod counts;
mod endpoints;
mod events;
mod histogram;

use derive_more::AddAssign;

pub use counts::{
    Counts, Failure, FailureCounts, Fewest, HandshakeCounts, RequestCounts, Samples, Seen,
    Statuses, StreamCounts,
};
pub use endpoints::{Endpoint, Endpoints};
pub use events::EventTimes;
pub use histogram::{Histogram, PercentileStep};

/// How long something took.
#[derive(Debug, Clone, Default, AddAssign)]
pub struct Histograms {
    /// Service times of answers that came in one read, first byte and end at once.
    pub whole: Histogram,
    /// Times from sending to the first byte, of the other answers.
    pub first_byte: Histogram,
    /// Times from sending to the end, of the other answers.
    pub last_byte: Histogram,
    /// Time from opening a connection until it is established.
    pub connect: Histogram,
    /// TLS handshakes, from the connection's establishment on.
    pub handshake: Histogram,
    /// Opening a WebSocket, from the connection's establishment, or the TLS handshake, on.
    pub upgrade: Histogram,
    /// Open loop: times of valid answers from when their request was due.
    pub response: Histogram,
    /// Times waited in vain: requests that timed out and, in an open loop, unanswered ones.
    pub waited: Histogram,
    /// Open loop: from when a request was due and a connection free until it or a connection for
    /// it was begun.
    pub send_delay: Histogram,
    /// Latencies and failures of requests that are reported separately.
    pub endpoints: Endpoints,
    pub events: EventTimes,
}

/// Everything one thread records in one window.
#[derive(Debug, Clone, Default, AddAssign)]
pub struct Recorder {
    pub counts: Counts,
    pub times: Histograms,
}

impl Histograms {
    /// Times of a valid answer, by when its request was sent, and when its first and last byte
    /// came; in an open loop also by the time its latency counts from.
    pub fn answered(
        &mut self,
        sent_ns: u64,
        first_byte_ns: u64,
        done_ns: u64,
        open_from_ns: Option<u64>,
    ) {
        let service_ns = done_ns.saturating_sub(sent_ns);
        if first_byte_ns == done_ns {
            self.whole.record(service_ns);
        } else {
            self.first_byte.record(first_byte_ns.saturating_sub(sent_ns));
            self.last_byte.record(service_ns);
        }
        if let Some(from_ns) = open_from_ns {
            self.response.record(done_ns.saturating_sub(from_ns));
        }
    }

    /// Every valid answer's time from sending to its end.
    pub fn service_time(&self) -> Histogram {
        sum([&self.whole, &self.last_byte])
    }

    /// Every valid answer's time from sending to its first byte.
    pub fn first_byte_time(&self) -> Histogram {
        sum([&self.whole, &self.first_byte])
    }

    /// Times as who asks sees them: from when a request was due, or sent in a closed loop;
    /// what was waited for in vain took at least that long.
    pub fn latency(&self, open: bool) -> Histogram {
        match open {
            true => sum([&self.response, &self.waited]),
            false => sum([&self.whole, &self.last_byte, &self.waited]),
        }
    }
}

fn sum<const N: usize>(histograms: [&Histogram; N]) -> Histogram {
    let mut all = Histogram::default();
    histograms.into_iter().for_each(|histogram| all.add(histogram));
    all
}

/// Connections next to the load, apart from its counts and times.
#[derive(Debug, Clone, Default, AddAssign)]
pub struct OtherConnections {
    pub slow: Recorder,
    pub idle: Recorder,
    /// Idle connections that were answered and open at the end.
    pub idle_held: u64,
}

/// For people and files, who need no more digits after the point.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
