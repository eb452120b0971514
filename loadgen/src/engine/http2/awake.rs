//! Which streams are to be looked at again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Streams that something has happened to.
#[derive(Debug, Default)]
pub struct Awake(Mutex<VecDeque<usize>>);

impl Awake {
    pub fn push(&self, number: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(number);
    }

    pub fn pop(&self) -> Option<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// For the library, to say that something has happened to a stream.
    pub fn waker(self: &Arc<Self>, number: usize) -> Waker {
        Waker::from(Arc::new(StreamWaker { number, awake: Arc::clone(self) }))
    }
}

struct StreamWaker {
    number: usize,
    awake: Arc<Awake>,
}

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        self.awake.push(self.number);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.awake.push(self.number);
    }
}
