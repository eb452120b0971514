//! The buffers that one thread shares among its connections.

pub const READ_BYTES: usize = 64 * 1024;
pub(super) const DROP_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub struct Scratch {
    pub(super) read: Vec<u8>,
    /// Never touched: the kernel drops what would go there. Only its length matters.
    pub(super) dropped: Vec<u8>,
    /// How much of `read` the last read filled.
    pub(super) filled: usize,
}

impl Scratch {
    pub fn new() -> Self {
        Scratch { read: vec![0; READ_BYTES], dropped: vec![0; DROP_BYTES], filled: 0 }
    }

    /// Where to read to.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.read
    }

    /// So much was read.
    pub fn fill(&mut self, count: usize) -> &[u8] {
        self.filled = count;
        self.last_read()
    }

    /// What was read last.
    pub fn last_read(&self) -> &[u8] {
        &self.read[..self.filled]
    }
}
