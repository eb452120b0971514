//! The streams that a server opens (RFC 9114 section 6.2): one by which it controls the connection, two
//! for a table of header fields that we don't have, and whatever else nobody needs to know.

use std::collections::BTreeMap;

use quinn_proto::{Connection, ReadError, StreamId, VarInt};

use crate::http3::code::{
    CLOSED_CRITICAL_STREAM, ENCODER_STREAM_ERROR, FRAME_ERROR, Fault, ID_ERROR,
    STREAM_CREATION_ERROR,
};
use crate::http3::frame::{self, CONTROL_STREAM, DECODER_STREAM, ENCODER_STREAM, PUSH_STREAM};
use crate::http3::reader::{Kind, Piece, Reader};
use crate::http3::{qpack, settings};

/// A server that opens more of these only makes us work.
const MOST_UNKNOWN: usize = 10_000;

#[derive(Debug, Default)]
pub struct ServerStreams {
    open: BTreeMap<StreamId, ServerStream>,
    /// Kinds of which there may be one, and was.
    seen: Vec<u64>,
    unknown: usize,
    /// The first request that the server won't look at.
    unprocessed_from: Option<u64>,
}

#[derive(Debug)]
struct ServerStream {
    /// None until its first bytes have said it.
    kind: Option<u64>,
    /// Those bytes, as long as some are lacking.
    head: Vec<u8>,
    reader: Reader,
}

impl ServerStreams {
    pub fn open(&mut self, id: StreamId) {
        let reader = Reader::new(Kind::NewControl);
        self.open.insert(id, ServerStream { kind: None, head: Vec::new(), reader });
    }

    /// The first request that the server won't look at, once it has announced its end.
    pub fn unprocessed_from(&self) -> Option<u64> {
        self.unprocessed_from
    }

    /// Reads what has come on a stream.
    pub fn read(&mut self, quic: &mut Connection, id: StreamId) -> Result<(), Fault> {
        let Some(mut stream) = self.open.remove(&id) else { return Ok(()) };
        let mut incoming = quic.recv_stream(id);
        let Ok(mut chunks) = incoming.read(true) else { return Ok(()) };
        let goes_on = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.take(&mut stream, &chunk.bytes)?,
                Ok(None) | Err(ReadError::Reset(_)) => break false,
                Err(ReadError::Blocked) => break true,
            }
        };
        drop(chunks);
        match stream.kind {
            Some(CONTROL_STREAM | ENCODER_STREAM | DECODER_STREAM) if !goes_on => {
                let what = "a stream that the connection needs was closed";
                return Err(Fault::new(CLOSED_CRITICAL_STREAM, what));
            }
            Some(CONTROL_STREAM | ENCODER_STREAM | DECODER_STREAM) => {}
            Some(_) => {
                let _ = incoming.stop(VarInt::from_u32(STREAM_CREATION_ERROR));
                return Ok(());
            }
            None if !goes_on => return Ok(()),
            None => {}
        }
        self.open.insert(id, stream);
        Ok(())
    }

    fn take(&mut self, stream: &mut ServerStream, bytes: &[u8]) -> Result<(), Fault> {
        let mut rest = bytes;
        if stream.kind.is_none() {
            let before = stream.head.len();
            let room = rest.len().min(frame::MOST_NUMBER_BYTES - before);
            stream.head.extend_from_slice(&rest[..room]);
            let Some((kind, used)) = frame::number(&stream.head) else { return Ok(()) };
            stream.kind = Some(kind);
            rest = &rest[used - before..];
            self.begin(kind)?;
        }
        match stream.kind {
            Some(CONTROL_STREAM) => stream.reader.read(rest, |piece| self.control(&piece)),
            Some(ENCODER_STREAM) if rest.iter().any(|byte| *byte != qpack::NO_TABLE) => {
                let what = "it makes a table of header fields, though none is allowed";
                Err(Fault::new(ENCODER_STREAM_ERROR, what))
            }
            _ => Ok(()),
        }
    }

    fn begin(&mut self, kind: u64) -> Result<(), Fault> {
        match kind {
            CONTROL_STREAM | ENCODER_STREAM | DECODER_STREAM => {
                if self.seen.contains(&kind) {
                    let what = "a stream of which there is one is opened a second time";
                    return Err(Fault::new(STREAM_CREATION_ERROR, what));
                }
                self.seen.push(kind);
            }
            PUSH_STREAM => {
                return Err(Fault::new(ID_ERROR, "something is pushed, though that isn't allowed"));
            }
            _ => self.unknown += 1,
        }
        match self.unknown > MOST_UNKNOWN {
            true => Err(Fault::excess("it opens streams without end that say nothing")),
            false => Ok(()),
        }
    }

    fn control(&mut self, piece: &Piece<'_>) -> Result<(), Fault> {
        match piece {
            Piece::Whole(frame::SETTINGS, payload) => settings::check(payload),
            Piece::Whole(frame::GOAWAY, payload) => self.go_away(payload),
            _ => Ok(()),
        }
    }

    /// Section 5.2: it names a stream of ours, and none that it had promised to look at no more.
    fn go_away(&mut self, payload: &[u8]) -> Result<(), Fault> {
        let Some((id, _)) = frame::number(payload).filter(|(_, used)| *used == payload.len())
        else {
            return Err(Fault::new(FRAME_ERROR, "GOAWAY is not a number"));
        };
        if id % 4 != 0 || self.unprocessed_from.is_some_and(|before| id > before) {
            return Err(Fault::new(ID_ERROR, "GOAWAY names a stream that it can't"));
        }
        self.unprocessed_from = Some(id);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http3::code::{FRAME_UNEXPECTED, MISSING_SETTINGS};

    /// What comes of streams, each given as its bytes; those of the last may come in pieces.
    fn heard(streams: &[&[u8]]) -> Result<Option<u64>, u32> {
        let mut server = ServerStreams::default();
        for bytes in streams {
            let reader = Reader::new(Kind::NewControl);
            let mut stream = ServerStream { kind: None, head: Vec::new(), reader };
            for byte in *bytes {
                server.take(&mut stream, &[*byte]).map_err(|fault| fault.code)?;
            }
        }
        Ok(server.unprocessed_from())
    }

    #[test]
    fn a_server_controls_a_connection_by_the_rules() {
        assert_eq!(heard(&[&[0, 4, 0], &[2, 0x20], &[3, 0x81], &[0x21, 7, 7]]), Ok(None));
        assert_eq!(heard(&[&[0x40, 0, 4, 0, 7, 1, 8, 7, 1, 4]]), Ok(Some(4)));
        for (streams, code) in [
            (&[&[0, 4, 0][..], &[0, 4, 0]][..], STREAM_CREATION_ERROR),
            (&[&[2], &[2]], STREAM_CREATION_ERROR),
            (&[&[1, 0]], ID_ERROR),
            (&[&[2, 0x21]], ENCODER_STREAM_ERROR),
            (&[&[0, 7, 1, 0]], MISSING_SETTINGS),
            (&[&[0, 4, 0, 4, 0]], FRAME_UNEXPECTED),
            (&[&[0, 4, 0, 7, 1, 4, 7, 1, 8]], ID_ERROR),
            (&[&[0, 4, 0, 7, 1, 3]], ID_ERROR),
            (&[&[0, 4, 0, 7, 2, 0, 0]], FRAME_ERROR),
        ] {
            assert_eq!(heard(streams), Err(code), "{streams:?}");
        }
    }

    #[test]
    fn streams_that_say_nothing_have_an_end() {
        let many = vec![&[0x21][..]; MOST_UNKNOWN];
        assert_eq!(heard(&many), Ok(None));
        let more = vec![&[0x21][..]; MOST_UNKNOWN + 1];
        assert!(heard(&more).is_err());
    }
}
