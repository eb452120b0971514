//! Which stream of ours an id on the wire stands for (RFC 9113 section 5.1.1).

use std::collections::VecDeque;

use crate::http2::frame::LAST_STREAM;

const CLOSED: u32 = u32::MAX;

/// The ids of a client are odd, and each is larger than those before.
#[derive(Debug)]
pub struct Ids {
    /// Of the oldest stream that is open, or of the next one.
    first: u32,
    /// The numbers of streams from there on.
    numbers: VecDeque<u32>,
}

impl Ids {
    pub fn new() -> Ids {
        Ids { first: 1, numbers: VecDeque::new() }
    }

    /// Opens a stream.
    pub fn open(&mut self, number: usize) -> u32 {
        let id = self.next();
        self.numbers.push_back(number as u32);
        id
    }

    pub fn close(&mut self, id: u32) {
        if let Some(number) = self.place(id).and_then(|place| self.numbers.get_mut(place)) {
            *number = CLOSED;
        }
        while self.numbers.front() == Some(&CLOSED) {
            self.numbers.pop_front();
            self.first += 2;
        }
    }

    /// The number of the stream, while it is open.
    pub fn number(&self, id: u32) -> Option<usize> {
        let number = *self.numbers.get(self.place(id)?)?;
        (number != CLOSED).then_some(number as usize)
    }

    /// The stream is open, or was.
    pub fn is_known(&self, id: u32) -> bool {
        id % 2 == 1 && id < self.next()
    }

    /// No more streams can be opened.
    pub fn are_used_up(&self) -> bool {
        self.next() > LAST_STREAM
    }

    fn next(&self) -> u32 {
        self.first + 2 * self.numbers.len() as u32
    }

    fn place(&self, id: u32) -> Option<usize> {
        let after = id.checked_sub(self.first).filter(|after| after % 2 == 0)?;
        Some(after as usize / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_numbers_while_they_are_open() {
        let mut ids = Ids::new();
        assert_eq!([7, 8, 9].map(|number| ids.open(number)), [1, 3, 5]);
        ids.close(3);
        ids.close(3);
        assert_eq!(
            [0, 1, 2, 3, 5, 7].map(|id| ids.number(id)),
            [None, Some(7), None, None, Some(9), None]
        );
        assert_eq!(
            [0, 1, 2, 3, 6, 7].map(|id| ids.is_known(id)),
            [false, true, false, true, false, false]
        );
        ids.close(1);
        assert_eq!((ids.first, ids.open(7), ids.number(1)), (5, 7, None));
        assert!(!Ids { first: LAST_STREAM, ..Ids::new() }.are_used_up());
        assert!(Ids { first: LAST_STREAM + 2, ..Ids::new() }.are_used_up());
    }
}
