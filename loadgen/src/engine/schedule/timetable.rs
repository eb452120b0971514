//! The one timetable of an open loop, shared by all threads.
//!
//! A thread with a free connection takes the next due request off the timetable, keeps that
//! connection for it and sleeps until it is due. A thread without a free connection takes nothing,
//! so no due request ever waits behind a busy thread while another one is free. Taking is one short
//! lock per request.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::due_times::{Due, DueTimes};
use crate::record::Recorder;

#[derive(Debug)]
struct Book {
    due_times: DueTimes,
    next: Option<Due>,
    /// Due, not taken: bounded.
    backlog: VecDeque<Due>,
    /// How many due times of the window there were so far.
    in_window: u64,
    /// Of requests that nobody took: dropped ones, and how long each had waited.
    leftover: Recorder,
}

/// Of the requests that are due in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InWindow {
    pub due: u64,
    /// Due, and taken by nobody.
    pub waiting: u64,
}

#[derive(Debug)]
pub struct Timetable {
    /// The result is about what is due in this time.
    window_ns: Range<u64>,
    max_backlog: usize,
    book: Mutex<Book>,
}

impl Timetable {
    pub fn new(mut due_times: DueTimes, max_backlog: u32, window_ns: Range<u64>) -> Self {
        let (next, leftover) = (due_times.next(), Recorder::default());
        let book = Book { due_times, next, backlog: VecDeque::new(), in_window: 0, leftover };
        Timetable { window_ns, max_backlog: max_backlog as usize, book: Mutex::new(book) }
    }

    /// Takes the next request off the timetable, due already or not; `None` after the last.
    pub fn take(&self, now_ns: u64) -> Option<Due> {
        let mut book = self.lock();
        self.collect(&mut book, now_ns);
        match book.backlog.pop_front() {
            Some(due) => Some(due),
            None => self.advance(&mut book),
        }
    }

    /// Nothing that was due before `end_ns` waits to be taken.
    pub fn is_taken_until(&self, end_ns: u64) -> bool {
        let book = self.lock();
        book.backlog.front().or(book.next.as_ref()).is_none_or(|due| due.at_ns >= end_ns)
    }

    /// What was due by `now_ns`, all in all.
    pub fn in_window(&self, now_ns: u64) -> InWindow {
        let mut book = self.lock();
        self.collect(&mut book, now_ns);
        let waiting = book.backlog.iter().filter(|due| self.window_ns.contains(&due.at_ns));
        InWindow { due: book.in_window, waiting: waiting.count() as u64 }
    }

    /// What nobody took until `end_ns`.
    pub fn close(&self, end_ns: u64) -> Recorder {
        let mut book = self.lock();
        self.collect(&mut book, end_ns.saturating_sub(1));
        while let Some(due) = book.backlog.pop_front() {
            // A thread that looked just after the end has seen what was due then.
            if due.at_ns < end_ns && self.window_ns.contains(&due.at_ns) {
                book.leftover.counts.requests.unsent += 1;
                book.leftover.times.waited.record(end_ns - due.at_ns);
            }
        }
        std::mem::take(&mut book.leftover)
    }

    /// Moves what is due by `now_ns` to the backlog, and drops the oldest where that overflows.
    fn collect(&self, book: &mut Book, now_ns: u64) {
        while book.next.is_some_and(|due| due.at_ns <= now_ns)
            && let Some(due) = self.advance(book)
        {
            book.backlog.push_back(due);
            if book.backlog.len() > self.max_backlog
                && let Some(oldest) = book.backlog.pop_front()
                && self.window_ns.contains(&oldest.at_ns)
            {
                book.leftover.counts.requests.dropped += 1;
                book.leftover.times.waited.record(now_ns.saturating_sub(oldest.at_ns));
            }
        }
        // The one about to be taken does not wait.
        let waiting = book.backlog.len().saturating_sub(1) as u64;
        let most_waiting = &mut book.leftover.counts.requests.most_waiting;
        *most_waiting = waiting.max(*most_waiting);
    }

    /// The next due time, which is then taken or waits.
    fn advance(&self, book: &mut Book) -> Option<Due> {
        let due = book.next?;
        book.next = book.due_times.next();
        book.in_window += u64::from(self.window_ns.contains(&due.at_ns));
        Some(due)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Book> {
        // Nothing panics while the lock is held, and the book is whole between statements.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Arrivals;

    fn due_times(times: &[f64], count: Option<u64>) -> DueTimes {
        DueTimes::new(&Arrivals { times_s: times.into(), ..Arrivals::default() }, count, 0)
    }

    fn table(times: &[f64], count: Option<u64>, max_backlog: u32) -> Timetable {
        Timetable::new(due_times(times, count), max_backlog, 0..u64::MAX)
    }

    #[test]
    fn gives_each_place_once_and_in_order() {
        let table = table(&[0.0, 1e-9, 5e-9], None, 10);
        let taken: Vec<Due> = std::iter::from_fn(|| table.take(1)).collect();
        let pairs: Vec<(u64, u64)> = taken.iter().map(|due| (due.at_ns, due.number)).collect();
        assert_eq!(pairs, [(0, 0), (1, 1), (5, 2)]);
        assert_eq!(table.close(100).counts.requests.unsent, 0);
    }

    #[test]
    fn counts_what_nobody_took() {
        let table = table(&[0.0, 1e-9, 2e-9, 9e-9], None, 10);
        assert_eq!(table.take(0).map(|due| due.number), Some(0));
        let leftover = table.close(9);
        assert_eq!((leftover.counts.requests.dropped, leftover.counts.requests.unsent), (0, 2));
        assert_eq!(leftover.times.waited.count(), 2);
    }

    #[test]
    fn what_is_due_after_the_end_does_not_count() {
        let table = table(&[0.0, 1e-9, 8e-9, 9e-9], None, 10);
        assert_eq!(table.take(9).map(|due| due.number), Some(0));
        let leftover = table.close(8);
        assert_eq!((leftover.counts.requests.unsent, leftover.times.waited.count()), (1, 1));
    }

    #[test]
    fn drops_the_oldest_of_a_full_backlog() {
        let table = table(&[0.0, 1e-9, 2e-9, 3e-9], None, 2);
        assert_eq!(table.take(3).map(|due| due.number), Some(2));
        let leftover = table.close(10);
        assert_eq!(
            (
                leftover.counts.requests.dropped,
                leftover.counts.requests.unsent,
                leftover.times.waited.count()
            ),
            (2, 1, 3)
        );
    }

    #[test]
    fn counts_only_what_is_due_in_its_window() {
        let due_times = due_times(&[0.0, 1e-9, 2e-9, 3e-9, 4e-9, 5e-9], None);
        let table = Timetable::new(due_times, 2, 1..4);
        // The first two are dropped, and one of them was due before the window.
        assert_eq!(table.take(3).map(|due| due.number), Some(2));
        assert!(!table.is_taken_until(4) && table.is_taken_until(3));
        assert_eq!(table.in_window(4), InWindow { due: 3, waiting: 1 });
        let leftover = table.close(4);
        assert_eq!((leftover.counts.requests.dropped, leftover.counts.requests.unsent), (1, 1));
    }

    #[test]
    fn ends_after_the_count() {
        let table = table(&[0.0; 9], Some(4), 100);
        assert_eq!(std::iter::from_fn(|| table.take(0)).count(), 4);
    }
}
