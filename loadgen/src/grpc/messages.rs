//! Where messages end, and what they hold (grpc.io, "gRPC over HTTP2", Length-Prefixed-Message).

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// A byte that says whether the message is compressed, and its length.
const PREFIX_BYTES: usize = 5;
const COMPRESSED: u8 = 1;

/// Counts messages of one body, which may come in any pieces.
#[derive(Debug, Default)]
pub struct Messages {
    prefix: [u8; PREFIX_BYTES],
    /// How much of the prefix has come.
    come: usize,
    /// What is left of the message after it.
    left: usize,
    /// Of all so far: what their first bytes said.
    flags: u8,
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
                let [flag, length @ ..] = self.prefix;
                self.flags |= flag;
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

    /// None has begun that hasn't ended.
    pub fn are_whole(&self) -> bool {
        self.come == 0
    }

    /// Some are compressed.
    pub fn are_compressed(&self) -> bool {
        self.flags & COMPRESSED != 0
    }

    /// Some say of themselves what has no meaning.
    pub fn are_odd(&self) -> bool {
        self.flags & !COMPRESSED != 0
    }
}

/// Puts a message with its prefix behind others, compressed by gzip or as it is.
pub fn put(message: &[u8], gzip: bool, body: &mut Vec<u8>) {
    let packed = gzip.then(|| packed(message)).flatten();
    let (flag, bytes) = packed.as_deref().map_or((0, message), |bytes| (COMPRESSED, bytes));
    body.push(flag);
    body.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    body.extend_from_slice(bytes);
}

fn packed(message: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(message).ok()?;
    encoder.finish().ok()
}

/// The messages of a body, unpacked; an error says why they can't be read. More than `most_bytes` in
/// all isn't unpacked: a small message may be made of very many bytes.
pub fn read(mut body: &[u8], most_bytes: usize) -> Result<Vec<Vec<u8>>, String> {
    let mut messages = Vec::new();
    let mut left = most_bytes;
    while !body.is_empty() {
        let cut = || "ends in the middle of a message".to_owned();
        let ([flag, length @ ..], rest) =
            body.split_first_chunk::<PREFIX_BYTES>().ok_or_else(cut)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (message, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        let message = match flag & COMPRESSED {
            0 => message.to_vec(),
            _ => unpacked(message, left)?,
        };
        let too_long = || format!("has messages of more than {most_bytes} bytes, unpacked");
        left = left.checked_sub(message.len()).ok_or_else(too_long)?;
        messages.push(message);
        body = rest;
    }
    Ok(messages)
}

/// A message, or so much of it that it shows to be longer.
fn unpacked(packed: &[u8], most_bytes: usize) -> Result<Vec<u8>, String> {
    let mut message = Vec::new();
    let decoder = GzDecoder::new(packed);
    let read = decoder.take(most_bytes as u64 + 1).read_to_end(&mut message);
    read.map_err(|error| format!("has a compressed message that is no gzip: {error}"))?;
    Ok(message)
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

    #[test]
    fn messages_are_read_as_they_were_put() {
        for gzip in [false, true] {
            let mut body = Vec::new();
            put(b"hello", gzip, &mut body);
            put(b"", gzip, &mut body);
            assert_eq!(read(&body, 5), Ok(vec![b"hello".to_vec(), Vec::new()]));
            let mut messages = Messages::default();
            assert_eq!(messages.feed(&body), 2);
            assert_eq!((messages.are_compressed(), messages.are_odd()), (gzip, false));
            messages.feed(&[2]);
            assert!(!messages.are_whole());
        }
        let bomb = packed(&[0; 1000]).expect("packed");
        let mut body = [&[1][..], &(bomb.len() as u32).to_be_bytes(), &bomb].concat();
        assert_eq!(read(&body, 1000), Ok(vec![vec![0; 1000]]));
        assert!(read(&body, 999).is_err());
        put(b"x", false, &mut body);
        assert!(read(&body, 1000).is_err());
        for (body, why) in [
            (&b"\0\0\0\0\x02x"[..], "middle"),
            (b"\0\0", "middle"),
            (b"\x01\0\0\0\x01x", "no gzip"),
        ] {
            assert!(read(body, 99).expect_err(why).contains(why), "{why}");
        }
    }
}
