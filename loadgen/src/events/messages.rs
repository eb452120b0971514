//! gRPC: where messages end (grpc.io, "gRPC over HTTP2", Length-Prefixed-Message).

/// A byte that says whether the message is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Counts messages of one body, which may come in any pieces.
#[derive(Debug, Default)]
pub struct Messages {
    prefix: [u8; PREFIX_BYTES],
    /// How much of the prefix has come.
    come: usize,
    /// What is left of the message after it.
    left: usize,
}

impl Messages {
    /// Says how many end within the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8]) -> u32 {
        let mut ended = 0;
        loop {
            if self.come < PREFIX_BYTES {
                let (prefix, rest) = bytes.split_at(bytes.len().min(PREFIX_BYTES - self.come));
                self.prefix[self.come..self.come + prefix.len()].copy_from_slice(prefix);
                self.come += prefix.len();
                bytes = rest;
                if self.come < PREFIX_BYTES {
                    return ended;
                }
                let [_, length @ ..] = self.prefix;
                self.left = u32::from_be_bytes(length) as usize;
            }
            let count = bytes.len().min(self.left);
            self.left -= count;
            bytes = &bytes[count..];
            if self.left > 0 {
                return ended;
            }
            self.come = 0;
            ended += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_end_wherever_they_are_cut(
            lengths in proptest::collection::vec(0usize..40, 0..8),
            piece in 1usize..50,
            lacks in 0usize..2,
        ) {
            let mut body = Vec::new();
            for length in &lengths {
                body.push(0);
                body.extend_from_slice(&(*length as u32).to_be_bytes());
                body.resize(body.len() + length, b'x');
            }
            let lacks = lacks.min(lengths.len());
            body.truncate(body.len() - lacks);
            let mut messages = Messages::default();
            let ended: u32 = body.chunks(piece).map(|bytes| messages.feed(bytes)).sum();
            prop_assert_eq!(ended as usize, lengths.len() - lacks);
        }
    }
}
