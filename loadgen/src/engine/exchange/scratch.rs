//! The buffers that one thread shares among its connections.

pub const READ_BYTES: usize = 64 * 1024;
pub(super) const DROP_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
pub struct Scratch {
    pub(super) read: Vec<u8>,
    /// Never touched: the kernel drops what would go there. Only its length matters.
    pub(super) dropped: Vec<u8>,
    /// How much of `read` the last read filled, where an answer begins with it.
    pub(super) begun: usize,
}

impl Scratch {
    pub fn new() -> Self {
        Scratch { read: vec![0; READ_BYTES], dropped: vec![0; DROP_BYTES], begun: 0 }
    }

    /// Where to read to.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.read
    }

    /// So much was read there.
    pub fn filled(&self, count: usize) -> &[u8] {
        &self.read[..count]
    }

    /// What was read last, if that is the beginning of an answer. Another piece may begin within a
    /// secret that the server repeats: nobody who hides those would know it by its end.
    pub fn beginning(&self) -> &[u8] {
        &self.read[..self.begun]
    }
}
