//! Frames of HTTP/3 (RFC 9114 section 7) and the numbers of QUIC that they are made of (RFC 9000
//! section 16).

pub const DATA: u64 = 0x0;
pub const HEADERS: u64 = 0x1;
pub const CANCEL_PUSH: u64 = 0x3;
pub const SETTINGS: u64 = 0x4;
pub const PUSH_PROMISE: u64 = 0x5;
pub const GOAWAY: u64 = 0x7;
pub const MAX_PUSH_ID: u64 = 0xd;
/// Those of HTTP/2 that have no counterpart (section 7.2.8).
pub const OF_HTTP2: [u64; 4] = [0x2, 0x6, 0x8, 0x9];

// Kinds of unidirectional streams (section 6.2, RFC 9204 section 4.2).
pub const CONTROL_STREAM: u64 = 0x0;
pub const PUSH_STREAM: u64 = 0x1;
pub const ENCODER_STREAM: u64 = 0x2;
pub const DECODER_STREAM: u64 = 0x3;

/// A number takes so many bytes at most, and the head of a frame twice as many.
pub const MOST_NUMBER_BYTES: usize = 8;
pub const MOST_HEAD_BYTES: usize = 2 * MOST_NUMBER_BYTES;

/// The number that bytes begin with, and how many they are; None where it isn't there in full.
#[inline]
pub fn number(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let count = 1 << (first >> 6);
    let rest = bytes.get(1..count)?;
    let high = u64::from(first & 0x3f);
    Some((rest.iter().fold(high, |sum, byte| sum << 8 | u64::from(*byte)), count))
}

/// Appends a number in as few bytes as it takes.
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    let (mark, count) = match number {
        0..0x40 => (0x00, 1),
        0x40..0x4000 => (0x40, 2),
        0x4000..0x4000_0000 => (0x80, 4),
        _ => (0xc0, 8),
    };
    let bytes = number.to_be_bytes();
    let begin = out.len();
    out.extend_from_slice(&bytes[bytes.len() - count..]);
    out[begin] |= mark;
}

/// The kind and the length of the frame that bytes begin with, and the length of its head; None
/// where that isn't there in full.
#[inline]
pub fn head(bytes: &[u8]) -> Option<(u64, u64, usize)> {
    let (kind, of_kind) = number(bytes)?;
    let (length, of_length) = number(&bytes[of_kind..])?;
    Some((kind, length, of_kind + of_length))
}

/// Appends the head of a frame.
pub fn write_head(out: &mut Vec<u8>, kind: u64, length: usize) {
    write_number(out, kind);
    write_number(out, length as u64);
}

/// Appends a frame.
pub fn write(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    write_head(out, kind, payload.len());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 9000 appendix A.1.
    #[test]
    fn numbers_of_the_standard() {
        for (hex, value) in [
            ("c2197c5eff14e88c", 151_288_809_941_952_652),
            ("9d7f3e7d", 494_878_333),
            ("7bbd", 15_293),
            ("25", 37),
            ("4025", 37),
        ] {
            let bytes = hex::decode(hex).expect("hex");
            assert_eq!(number(&bytes), Some((value, bytes.len())));
            assert_eq!(number(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(number(&[]), None);
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_written(value in 0..1_u64 << 62, rest: [u8; 3]) {
            let mut bytes = Vec::new();
            write_number(&mut bytes, value);
            let count = bytes.len();
            bytes.extend_from_slice(&rest);
            prop_assert_eq!(number(&bytes), Some((value, count)));
        }
    }
}
