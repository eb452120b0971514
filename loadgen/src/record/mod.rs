//! What is counted and timed: one [`Recorder`] per thread and window, merged afterwards.

mod timing;

pub use timing::{Step, Timing};

/// The ways in which a request can fail; each failed request has exactly one of these.
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
    /// What came is not HTTP.
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

    fn add(&mut self, other: &FailureCounts) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

const MOST_SAMPLES: usize = 5;

/// A few failures in words, for people.
#[derive(Debug, Clone, Default)]
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

/// What TLS and HTTP/2 add to the record.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Times of TLS handshakes, from the connection's establishment on.
    pub handshake: Timing,
    pub full_handshakes: u64,
    pub resumed_handshakes: u64,
    /// HTTP/2: connections whose end the server announced.
    pub go_aways: u64,
    /// Requests asked again, because the server said that it had not seen them.
    pub asked_again: u64,
    pub refused_streams: u64,
    /// Streams the server reset for other reasons.
    pub reset_streams: u64,
    /// The fewest streams at a time that a server allowed.
    pub streams_allowed: Option<u64>,
}

impl Layers {
    /// Adds everything but times.
    fn add_counts(&mut self, other: &Layers) {
        self.full_handshakes += other.full_handshakes;
        self.resumed_handshakes += other.resumed_handshakes;
        self.go_aways += other.go_aways;
        self.asked_again += other.asked_again;
        self.refused_streams += other.refused_streams;
        self.reset_streams += other.reset_streams;
        if let Some(allowed) = other.streams_allowed {
            self.allow(allowed);
        }
    }

    /// A server allows so many streams at a time.
    pub fn allow(&mut self, streams: u64) {
        self.streams_allowed =
            Some(self.streams_allowed.map_or(streams, |known| known.min(streams)));
    }
}

/// How many answers had each status, which has three digits.
#[derive(Debug, Clone)]
pub struct Statuses(Box<[u64; 1000]>);

impl Default for Statuses {
    fn default() -> Self {
        Statuses(Box::new([0; 1000]))
    }
}

impl Statuses {
    #[inline]
    pub fn count(&mut self, status: u16) {
        self.0[usize::from(status)] += 1;
    }

    /// Those that were seen.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }
}

/// Everything one thread records in one window.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    pub sent: u64,
    pub completed: u64,
    /// In flight when the window of the slot began, and when it ended.
    pub carried: u64,
    pub unanswered: u64,
    /// Of the unanswered, those answered validly afterwards.
    pub drained: u64,
    pub failures: FailureCounts,
    pub by_status: Statuses,
    pub head_bytes: u64,
    pub body_bytes: u64,
    pub opened: u64,
    pub reused: u64,
    /// Connections the server closed although we wanted to go on using them.
    pub server_closed: u64,
    pub samples: Samples,
    /// Service times of answers that came in one read, first byte and end at once.
    pub whole: Timing,
    /// Times from sending to the first byte, of the other answers.
    pub first_byte: Timing,
    /// Times from sending to the end, of the other answers.
    pub last_byte: Timing,
    /// Time from opening a connection until it is established.
    pub connect: Timing,
    /// Open loop: times of valid answers from when their request was due.
    pub response: Timing,
    /// Times waited in vain: requests that timed out and, in an open loop, unanswered ones.
    pub waited: Timing,
    /// Open loop: from when a request was due and a connection free until it or a connection for
    /// it was begun.
    pub lag: Timing,
    /// Open loop: due requests that were taken but not sent before the end.
    pub unsent: u64,
    /// What TLS and HTTP/2 add; absent where neither is spoken.
    pub layers: Option<Box<Layers>>,
}

impl Recorder {
    /// Times of a valid answer, by when its request was sent, and when its first and last byte
    /// came; in an open loop also by the time its response time counts from.
    pub fn time(
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

    pub fn add(&mut self, other: &Recorder) {
        self.add_counts(other);
        self.add_times(other);
    }

    pub fn add_times(&mut self, other: &Recorder) {
        self.whole.add(&other.whole);
        self.first_byte.add(&other.first_byte);
        self.last_byte.add(&other.last_byte);
        self.connect.add(&other.connect);
        self.response.add(&other.response);
        self.waited.add(&other.waited);
        self.lag.add(&other.lag);
        if let Some(layers) = &other.layers {
            self.layers().handshake.add(&layers.handshake);
        }
    }

    pub fn add_counts(&mut self, other: &Recorder) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.carried += other.carried;
        self.unanswered += other.unanswered;
        self.drained += other.drained;
        self.failures.add(&other.failures);
        other.by_status.iter().for_each(|(status, count)| self.by_status.0[status] += count);
        self.head_bytes += other.head_bytes;
        self.body_bytes += other.body_bytes;
        self.opened += other.opened;
        self.reused += other.reused;
        self.server_closed += other.server_closed;
        for text in other.samples.iter() {
            self.samples.keep(text.clone());
        }
        self.unsent += other.unsent;
        if let Some(layers) = &other.layers {
            self.layers().add_counts(layers);
        }
    }

    pub fn layers(&mut self) -> &mut Layers {
        self.layers.get_or_insert_default()
    }

    /// Every valid answer's time from sending to its end.
    pub fn service_time(&self) -> Timing {
        sum([&self.whole, &self.last_byte])
    }

    /// Every valid answer's time from sending to its first byte.
    pub fn first_byte_time(&self) -> Timing {
        sum([&self.whole, &self.first_byte])
    }

    /// Times as who asks sees them: from when a request was due, or sent in a closed loop;
    /// what was waited for in vain took at least that long.
    pub fn response_time(&self, open: bool) -> Timing {
        match open {
            true => sum([&self.response, &self.waited]),
            false => sum([&self.whole, &self.last_byte, &self.waited]),
        }
    }
}

fn sum<const N: usize>(timings: [&Timing; N]) -> Timing {
    let mut all = Timing::default();
    timings.into_iter().for_each(|timing| all.add(timing));
    all
}

/// What goes on beside the load, apart from its counts and times.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    pub slow: Recorder,
    pub idle: Recorder,
    /// Idle connections that were answered and open at the end.
    pub idle_held: u64,
}

impl Beside {
    pub fn add(&mut self, other: &Beside) {
        self.slow.add(&other.slow);
        self.idle.add(&other.idle);
        self.idle_held += other.idle_held;
    }
}

/// For people and files, who need no more digits after the point.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (value * scale).round() / scale
}
