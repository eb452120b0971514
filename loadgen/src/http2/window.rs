//! Flow control (RFC 9113 section 5.2), of connections and streams alike.

use super::code::Fault;

/// What both sides may send at first, until they hear otherwise.
pub const FIRST_BYTES: u32 = 65_535;
/// The largest window there may be.
pub const MOST_BYTES: u32 = (1 << 31) - 1;

/// What we may send. It may be less than nothing (section 6.9.2).
#[derive(Debug, Clone, Copy)]
pub struct SendWindow(i64);

impl SendWindow {
    pub fn new(bytes: u32) -> SendWindow {
        SendWindow(i64::from(bytes))
    }

    pub fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    pub fn take(&mut self, bytes: usize) {
        self.0 -= bytes as i64;
    }

    /// The server changes it by so much.
    pub fn change(&mut self, by: i64) -> Result<(), Fault> {
        self.0 += by;
        match self.0 > i64::from(MOST_BYTES) {
            true => Err(Fault::flow("a flow control window is opened too far")),
            false => Ok(()),
        }
    }
}

/// What the server may send. It hears of it again when half is used up.
#[derive(Debug, Clone, Copy)]
pub struct ReceiveWindow {
    size: u32,
    used: u32,
}

impl ReceiveWindow {
    pub fn new(size: u32) -> ReceiveWindow {
        ReceiveWindow { size, used: 0 }
    }

    /// So much has come; by how much the window is to be opened again, if it is.
    pub fn take(&mut self, bytes: u32) -> Result<Option<u32>, Fault> {
        self.used += bytes;
        if self.used > self.size {
            return Err(Fault::flow("more came than the flow control window allows"));
        }
        Ok((self.used >= self.size / 2).then(|| std::mem::take(&mut self.used)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_opened_again_when_half_is_used() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.take(49), Ok(None));
        assert_eq!(window.take(11), Ok(Some(60)));
        assert_eq!(window.take(100), Ok(Some(100)));
        assert!(window.take(101).is_err());
    }

    #[test]
    fn what_may_be_sent_may_be_less_than_nothing() {
        let mut window = SendWindow::new(FIRST_BYTES);
        window.take(65_000);
        assert_eq!(window.room(), 535);
        assert_eq!((window.change(-65_535), window.room()), (Ok(()), 0));
        assert_eq!((window.change(65_010), window.room()), (Ok(()), 10));
        assert!(window.change(i64::from(MOST_BYTES)).is_err());
    }
}
