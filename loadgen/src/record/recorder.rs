//! Everything one thread records in one window.

use super::{Failure, FailureCounts, Layers, Timing};

/// Statuses have three digits.
pub const MAX_STATUS: usize = 1000;

/// A few failures in words, for people.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<String>);

const MOST_SAMPLES: usize = 5;

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

#[derive(Debug, Clone)]
pub struct Recorder {
    pub sent: u64,
    pub completed: u64,
    pub unanswered: u64,
    /// Of the unanswered, those answered validly while draining.
    pub drained: u64,
    pub failures: FailureCounts,
    pub by_status: Box<[u64; MAX_STATUS]>,
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
    /// Open loop: from when a request was due and a connection free until we began to send it.
    pub lag: Timing,
    /// Open loop: due requests that were taken but not sent before the end.
    pub unsent: u64,
    /// What TLS and HTTP/2 add; absent where neither is spoken.
    pub layers: Option<Box<Layers>>,
}

impl Recorder {
    pub fn empty() -> Self {
        Recorder {
            sent: 0,
            completed: 0,
            unanswered: 0,
            drained: 0,
            failures: FailureCounts::default(),
            by_status: Box::new([0; MAX_STATUS]),
            head_bytes: 0,
            body_bytes: 0,
            opened: 0,
            reused: 0,
            server_closed: 0,
            samples: Samples::default(),
            whole: Timing::empty(),
            first_byte: Timing::empty(),
            last_byte: Timing::empty(),
            connect: Timing::empty(),
            response: Timing::empty(),
            waited: Timing::empty(),
            lag: Timing::empty(),
            unsent: 0,
            layers: None,
        }
    }

    /// A valid answer, by when its request was sent, and when its first and last byte came;
    /// in an open loop also by the time its response time counts from.
    pub fn complete(
        &mut self,
        sent_ns: u64,
        first_byte_ns: u64,
        done_ns: u64,
        open_from_ns: Option<u64>,
    ) {
        self.completed += 1;
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

    pub fn fail(&mut self, failure: Failure) {
        self.failures.count(failure);
    }

    pub fn add(&mut self, other: &Recorder) {
        self.add_counts(other);
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

    /// Adds everything but times.
    pub fn add_counts(&mut self, other: &Recorder) {
        self.sent += other.sent;
        self.completed += other.completed;
        self.unanswered += other.unanswered;
        self.drained += other.drained;
        self.failures.add(&other.failures);
        for (sum, count) in self.by_status.iter_mut().zip(other.by_status.iter()) {
            *sum += count;
        }
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
        sum(&self.whole, &self.last_byte)
    }

    /// Every valid answer's time from sending to its first byte.
    pub fn first_byte_time(&self) -> Timing {
        sum(&self.whole, &self.first_byte)
    }

    /// Times as who asks sees them: from when a request was due, or sent in a closed loop;
    /// what was waited for in vain took at least that long.
    pub fn response_time(&self, open: bool) -> Timing {
        let answered = if open { self.response.clone() } else { self.service_time() };
        sum(&answered, &self.waited)
    }
}

fn sum(a: &Timing, b: &Timing) -> Timing {
    let mut both = a.clone();
    both.add(b);
    both
}
