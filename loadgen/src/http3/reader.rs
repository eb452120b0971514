//! Frames of one stream, read out of what has come, in whatever pieces. Bodies are handed over as
//! they come, other frames when they are whole; what nobody knows is skipped (RFC 9114 section 9).

use super::code::{FRAME_UNEXPECTED, Fault, ID_ERROR, MISSING_SETTINGS};
use super::frame::{self, MOST_HEAD_BYTES};
use crate::http1::head::MAX_HEAD_BYTES;

/// What a stream is for, which says what frames may come on it (section 7, table 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Request,
    /// Its first frame has come.
    Control,
    /// Its first frame is to come.
    NewControl,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A part of a body.
    Data(&'a [u8]),
    /// The payload of a frame of another kind.
    Whole(u64, &'a [u8]),
}

#[derive(Debug)]
pub struct Reader {
    kind: Kind,
    /// The beginning of a head, or of a frame that is handed over whole.
    kept: Vec<u8>,
    state: State,
}

/// What comes next, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    Data(u64),
    Skipped(u64),
    Whole(u64, usize),
}

impl Reader {
    pub fn new(kind: Kind) -> Reader {
        Reader { kind, kept: Vec::new(), state: State::Head }
    }

    /// No frame has begun that isn't whole.
    pub fn is_between_frames(&self) -> bool {
        self.state == State::Head && self.kept.is_empty()
    }

    pub fn read(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(Piece<'_>) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let used = match self.state {
                State::Head => {
                    let (head, used) = self.head(bytes);
                    if let Some((kind, length)) = head {
                        self.state = self.begin(kind, length)?;
                        // Nothing more comes of an empty frame.
                        if let State::Whole(kind, 0) = self.state {
                            self.state = State::Head;
                            take(Piece::Whole(kind, &[]))?;
                        }
                    }
                    used
                }
                State::Data(left) => {
                    let used = part(bytes, left);
                    self.state = rest(left, used, State::Data);
                    take(Piece::Data(&bytes[..used]))?;
                    used
                }
                State::Skipped(left) => {
                    let used = part(bytes, left);
                    self.state = rest(left, used, State::Skipped);
                    used
                }
                State::Whole(kind, length) => {
                    let used = part(bytes, (length - self.kept.len()) as u64);
                    if used == length {
                        self.state = State::Head;
                        take(Piece::Whole(kind, &bytes[..used]))?;
                    } else {
                        self.kept.extend_from_slice(&bytes[..used]);
                        if self.kept.len() == length {
                            self.state = State::Head;
                            let whole = std::mem::take(&mut self.kept);
                            take(Piece::Whole(kind, &whole))?;
                        }
                    }
                    used
                }
            };
            bytes = &bytes[used..];
        }
        Ok(())
    }

    /// The head of a frame, once it is there, and how many of the bytes are its.
    fn head(&mut self, bytes: &[u8]) -> (Option<(u64, u64)>, usize) {
        let before = self.kept.len();
        let room = bytes.len().min(MOST_HEAD_BYTES - before);
        let head = match before {
            0 => frame::head(bytes),
            _ => {
                self.kept.extend_from_slice(&bytes[..room]);
                frame::head(&self.kept)
            }
        };
        let Some((kind, length, used)) = head else {
            if before == 0 {
                self.kept.extend_from_slice(bytes);
            }
            return (None, room);
        };
        self.kept.clear();
        (Some((kind, length)), used - before)
    }

    /// A frame begins: what is done with it, where it may come.
    fn begin(&mut self, kind: u64, length: u64) -> Result<State, Fault> {
        if frame::OF_HTTP2.contains(&kind) {
            return Err(Fault::unexpected("a frame is one of HTTP/2's"));
        }
        if self.kind == Kind::NewControl {
            if kind != frame::SETTINGS {
                let what = "the control stream doesn't begin with SETTINGS";
                return Err(Fault::new(MISSING_SETTINGS, what));
            }
            self.kind = Kind::Control;
            return whole(kind, length);
        }
        match (kind, self.kind) {
            (frame::DATA, Kind::Request) => {
                Ok(if length == 0 { State::Head } else { State::Data(length) })
            }
            (frame::HEADERS, Kind::Request) | (frame::GOAWAY, Kind::Control) => whole(kind, length),
            // We allowed none.
            (frame::PUSH_PROMISE, Kind::Request) | (frame::CANCEL_PUSH, Kind::Control) => {
                Err(Fault::new(ID_ERROR, "a push is announced, though none is allowed"))
            }
            (frame::SETTINGS, Kind::Control) => {
                Err(Fault::unexpected("SETTINGS come a second time"))
            }
            (
                frame::DATA
                | frame::HEADERS
                | frame::CANCEL_PUSH
                | frame::SETTINGS
                | frame::PUSH_PROMISE
                | frame::GOAWAY
                | frame::MAX_PUSH_ID,
                _,
            ) => Err(Fault { code: FRAME_UNEXPECTED, what: "a frame has no place on its stream" }),
            _ => Ok(if length == 0 { State::Head } else { State::Skipped(length) }),
        }
    }
}

fn whole(kind: u64, length: u64) -> Result<State, Fault> {
    match usize::try_from(length) {
        Ok(length) if length <= MAX_HEAD_BYTES => Ok(State::Whole(kind, length)),
        _ => Err(Fault::excess("a frame is too long")),
    }
}

fn part(bytes: &[u8], left: u64) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())
}

fn rest(left: u64, used: usize, state: impl FnOnce(u64) -> State) -> State {
    match left - used as u64 {
        0 => State::Head,
        left => state(left),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Kinds and payloads.
    type Frames = Vec<(u64, Vec<u8>)>;

    /// What comes of bytes that arrive in pieces: frames, bodies put together.
    fn read(kind: Kind, bytes: &[u8], pieces: &[usize]) -> (Frames, Result<bool, Fault>) {
        let mut reader = Reader::new(kind);
        let mut frames = Frames::new();
        let mut rest = bytes;
        let mut lengths = pieces.iter().cycle();
        while !rest.is_empty() {
            let length = lengths.next().map_or(rest.len(), |length| (*length).min(rest.len()));
            let (piece, after) = rest.split_at(length);
            let outcome = reader.read(piece, |piece| {
                match piece {
                    Piece::Data(data) => match frames.last_mut() {
                        Some((frame::DATA, body)) => body.extend_from_slice(data),
                        _ => frames.push((frame::DATA, data.to_vec())),
                    },
                    Piece::Whole(kind, payload) => frames.push((kind, payload.to_vec())),
                }
                Ok(())
            });
            if let Err(fault) = outcome {
                return (frames, Err(fault));
            }
            rest = after;
        }
        (frames, Ok(reader.is_between_frames()))
    }

    #[test]
    fn frames_have_their_places() {
        let one = |kind: u64| [kind as u8, 1, b'a'];
        let code = |stream, bytes: &[u8]| read(stream, bytes, &[]).1.map_err(|fault| fault.code);
        for kind in [frame::DATA, frame::HEADERS, 0x21] {
            assert_eq!(code(Kind::Request, &one(kind)), Ok(true));
        }
        for kind in [frame::CANCEL_PUSH, frame::SETTINGS, frame::GOAWAY, frame::MAX_PUSH_ID, 2, 9] {
            assert_eq!(code(Kind::Request, &one(kind)), Err(FRAME_UNEXPECTED));
        }
        assert_eq!(code(Kind::Request, &one(frame::PUSH_PROMISE)), Err(ID_ERROR));
        assert_eq!(code(Kind::NewControl, &one(frame::GOAWAY)), Err(MISSING_SETTINGS));
        assert_eq!(code(Kind::NewControl, &[4, 0, 4, 0]), Err(FRAME_UNEXPECTED));
        assert_eq!(code(Kind::NewControl, &[4, 0, 7, 1, 0, 0x21, 0]), Ok(true));
        assert_eq!(code(Kind::Control, &one(frame::CANCEL_PUSH)), Err(ID_ERROR));
        for kind in [frame::DATA, frame::HEADERS, frame::PUSH_PROMISE, frame::MAX_PUSH_ID, 6] {
            assert_eq!(code(Kind::Control, &one(kind)), Err(FRAME_UNEXPECTED));
        }
        let mut long = Vec::new();
        frame::write_head(&mut long, frame::HEADERS, MAX_HEAD_BYTES + 1);
        assert!(code(Kind::Request, &long).is_err());
        assert_eq!(code(Kind::Request, &[1, 2, 0]), Ok(false));
    }

    proptest! {
        /// Pieces change nothing: the same frames come, whatever they are cut into.
        #[test]
        fn pieces_change_nothing(
            frames in vec((0..2_u64, vec(any::<u8>(), 0..40), any::<bool>()), 0..8),
            pieces in vec(1..9_usize, 0..9),
        ) {
            let mut bytes = Vec::new();
            for (kind, payload, is_unknown) in &frames {
                frame::write(&mut bytes, if *is_unknown { 0x21 } else { *kind }, payload);
            }
            let whole = read(Kind::Request, &bytes, &[]);
            prop_assert_eq!(&whole.1, &Ok(true));
            prop_assert_eq!(read(Kind::Request, &bytes, &pieces), whole);
        }

        #[test]
        fn whatever_comes_is_read_or_refused(
            bytes in vec(any::<u8>(), 0..200), pieces in vec(1..9_usize, 0..9),
        ) {
            for kind in [Kind::Request, Kind::NewControl] {
                let whole = read(kind, &bytes, &[]);
                prop_assert_eq!(read(kind, &bytes, &pieces), whole);
            }
        }
    }
}
