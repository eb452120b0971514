use serde::Serialize;
use sha2::{Digest, Sha256};

/// What was received.
#[derive(Serialize)]
pub struct Upload {
    bytes: u64,
    sha256: String,
}

/// What has been received so far.
#[derive(Default)]
pub struct Received {
    bytes: u64,
    hash: Sha256,
}

impl Received {
    /// Takes the next piece of a body.
    pub fn add(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.hash.update(piece);
    }

    /// That was all.
    pub fn finish(self) -> Upload {
        let sum = self.hash.finalize();
        let sha256 = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        Upload { bytes: self.bytes, sha256 }
    }
}
