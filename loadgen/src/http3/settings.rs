//! What a server's SETTINGS say (RFC 9114 section 7.2.4): nothing that changes what we do, as we use
//! no table for header fields and send short ones; but they have rules.

use super::code::{FRAME_ERROR, Fault, SETTINGS_ERROR};
use super::frame;

/// A client takes a head of so many bytes at most (section 4.2.2).
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
/// Those of HTTP/2 that have no counterpart (section 7.2.4.1).
const OF_HTTP2: [u64; 4] = [0x2, 0x3, 0x4, 0x5];

/// Our control stream: its kind, and our settings. Without others there is no dynamic table.
pub fn control_stream(most_head_bytes: usize) -> Vec<u8> {
    let mut settings = Vec::new();
    frame::write_number(&mut settings, MAX_FIELD_SECTION_SIZE);
    frame::write_number(&mut settings, most_head_bytes as u64);
    let mut stream = Vec::new();
    frame::write_number(&mut stream, frame::CONTROL_STREAM);
    frame::write(&mut stream, frame::SETTINGS, &settings);
    stream
}

/// Checks what a server sets.
pub fn check(payload: &[u8]) -> Result<(), Fault> {
    let mut rest = payload;
    let mut names = Vec::new();
    while !rest.is_empty() {
        let (name, _, used) =
            frame::head(rest).ok_or(Fault::new(FRAME_ERROR, "SETTINGS end in the middle"))?;
        rest = &rest[used..];
        if OF_HTTP2.contains(&name) {
            return Err(Fault::new(SETTINGS_ERROR, "a setting is one of HTTP/2's"));
        }
        names.push(name);
    }
    names.sort_unstable();
    match names.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(Fault::new(SETTINGS_ERROR, "a setting comes twice")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http3::reader::{Kind, Piece, Reader};

    #[test]
    fn what_we_say_is_right() {
        let stream = control_stream(65_536);
        let (kind, used) = frame::number(&stream).expect("a kind");
        assert_eq!(kind, frame::CONTROL_STREAM);
        let mut reader = Reader::new(Kind::NewControl);
        let take = |piece: Piece<'_>| match piece {
            Piece::Whole(frame::SETTINGS, payload) => check(payload),
            other => panic!("{other:?}"),
        };
        assert_eq!(reader.read(&stream[used..], take), Ok(()));
        assert!(reader.is_between_frames());
    }

    #[test]
    fn rules_are_kept() {
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[1, 0, 7, 0x40, 16, 0x21, 5]), Ok(()));
        for (payload, code) in [
            (&[1, 0, 7, 1, 1, 0][..], SETTINGS_ERROR),
            (&[4, 0], SETTINGS_ERROR),
            (&[1], FRAME_ERROR),
            (&[1, 0x40], FRAME_ERROR),
        ] {
            assert_eq!(check(payload).expect_err("wrong").code, code, "{payload:?}");
        }
    }
}
