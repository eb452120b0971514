//! HTTP/2 frame by frame (RFC 9113), so that a server can say what no library would.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

pub const NO_ERROR: u32 = 0;
pub const PROTOCOL_ERROR: u32 = 1;
pub const INTERNAL_ERROR: u32 = 2;
pub const FRAME_SIZE_ERROR: u32 = 6;
pub const CANCEL: u32 = 8;
pub const REFUSED_STREAM: u32 = 7;
pub const ENHANCE_YOUR_CALM: u32 = 11;
pub const MAX_CONCURRENT_STREAMS: u16 = 3;

pub const HEADER_TABLE_SIZE: u16 = 1;
pub const INITIAL_WINDOW_SIZE: u16 = 4;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const WITH_PRIORITY: u8 = 0x20;
pub const ACK: u8 = 1;

/// A frame of the client's.
#[derive(Debug)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub id: u32,
    pub payload: Vec<u8>,
}

/// A server's side of a connection.
pub struct Frames<S> {
    pub stream: S,
}

impl Frames<TcpStream> {
    /// Closes after all that was sent: unread bytes would make a reset of it.
    pub fn close(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        while self.next().is_some() {}
    }

    /// Another request comes within a few milliseconds.
    pub fn another_comes(&mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(3))).expect("a timeout");
        let mut comes = false;
        while !comes && matches!(self.stream.peek(&mut [0]), Ok(1)) {
            comes = self.next().is_some_and(|frame| frame.kind == HEADERS);
        }
        self.stream.set_read_timeout(None).expect("a timeout");
        comes
    }
}

impl<S: Read + Write> Frames<S> {
    /// Reads the client's preface and sends the server's settings; `None` if nothing came.
    pub fn begin(mut stream: S, settings: &[(u16, u32)]) -> Option<Frames<S>> {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).ok()?;
        assert!(preface.starts_with(b"PRI * HTTP/2.0"));
        let mut frames = Frames { stream };
        frames.settings(settings);
        Some(frames)
    }

    pub fn settings(&mut self, settings: &[(u16, u32)]) {
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        self.frame(SETTINGS, 0, 0, &payload);
    }

    /// The stream of the next request without a body; `None` when the client closed.
    pub fn request(&mut self) -> Option<u32> {
        self.next_of(HEADERS).map(|frame| frame.id)
    }

    /// The next frame of a kind.
    pub fn next_of(&mut self, kind: u8) -> Option<Frame> {
        loop {
            let frame = self.next()?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    /// The next frame; settings are acknowledged.
    pub fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        let (kind, flags) = (head[3], head[4]);
        if kind == SETTINGS && flags & ACK == 0 {
            self.frame(SETTINGS, ACK, 0, &[]);
        }
        let id = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        Some(Frame { kind, flags, id, payload })
    }

    /// A whole answer.
    pub fn answer(&mut self, id: u32, body: &[u8]) {
        self.head(id, 200, None, body.is_empty());
        if !body.is_empty() {
            self.data(id, body, true);
        }
    }

    /// Header fields (HPACK: literals with literal names), for a head or for trailers.
    pub fn fields(&mut self, id: u32, fields: &[(&str, &str)], end: bool) {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.extend_from_slice(&[0, name.len() as u8]);
            block.extend_from_slice(name.as_bytes());
            block.push(value.len() as u8);
            block.extend_from_slice(value.as_bytes());
        }
        self.frame(HEADERS, END_HEADERS | if end { END_STREAM } else { 0 }, id, &block);
    }

    /// Answers every request alike until the client closes.
    pub fn answer_all(&mut self, body: &[u8]) {
        while let Some(id) = self.request() {
            self.answer(id, body);
        }
    }

    /// The head of an answer (HPACK, RFC 7541: literals with indexed names).
    pub fn head(&mut self, id: u32, status: u16, length: Option<usize>, end: bool) {
        let mut block = vec![0x08, 3];
        block.extend_from_slice(status.to_string().as_bytes());
        if let Some(length) = length {
            let digits = length.to_string();
            block.extend_from_slice(&[0x0f, 28 - 15, digits.len() as u8]);
            block.extend_from_slice(digits.as_bytes());
        }
        self.frame(HEADERS, END_HEADERS | if end { END_STREAM } else { 0 }, id, &block);
    }

    pub fn data(&mut self, id: u32, bytes: &[u8], end: bool) {
        self.frame(DATA, if end { END_STREAM } else { 0 }, id, bytes);
    }

    /// Sends a part of a body; false where that fails.
    pub fn wrote_data(&mut self, id: u32, bytes: &[u8]) -> bool {
        let mut frame = vec![0, 0, bytes.len() as u8, DATA, 0];
        frame.extend_from_slice(&id.to_be_bytes());
        frame.extend_from_slice(bytes);
        self.bytes(&frame)
    }

    pub fn reset(&mut self, id: u32, code: u32) {
        self.frame(RST_STREAM, 0, id, &code.to_be_bytes());
    }

    pub fn go_away(&mut self, last: u32, code: u32) {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.frame(GOAWAY, 0, 0, &payload);
    }

    /// Writes; the client may be gone, which is its right.
    pub fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], kind, flags];
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.extend_from_slice(payload);
        self.bytes(&bytes);
    }

    /// Whether they could be written.
    pub fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_ok()
    }

    /// Opens a window of the client's.
    pub fn window(&mut self, id: u32, by: u32) {
        self.frame(WINDOW_UPDATE, 0, id, &by.to_be_bytes());
    }
}
