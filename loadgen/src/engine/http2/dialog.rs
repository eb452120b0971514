//! What is said on an HTTP/2 connection, without the wire below: requests become frames that are to
//! be sent, and frames that came become answers.

mod hearing;

use std::collections::VecDeque;

use super::ids::Ids;
use super::stream::{Outcome, Reading, Rest, Stream};
use crate::engine::flight::Flight;
use crate::events::EventStream;
use crate::http2::request::Message;
use crate::http2::trouble::{ConnectionEnd, Lost};
use crate::http2::window::{FIRST_BYTES, ReceiveWindow, SendWindow};
use crate::http2::{code, frame, hpack};

/// Flow control windows as Chrome has them, so that it isn't them that limit a server nearby.
const STREAM_WINDOW_BYTES: u32 = 6 << 20;
const CONNECTION_WINDOW_BYTES: u32 = 15 << 20;
/// Bodies of requests are put behind what waits to be sent up to so much.
const MOST_WAITING_BYTES: usize = 256 * 1024;

pub struct Dialog {
    /// Frames that are to be sent.
    pub outgoing: Vec<u8>,
    ids: Ids,
    streams: Vec<Option<Stream>>,
    pub in_flight: usize,
    /// Streams to be looked at: an answer has begun, or what became of a request is known.
    changed: VecDeque<usize>,
    /// Streams of which events came.
    heard: VecDeque<usize>,
    /// Streams whose requests have more of their body.
    sending: VecDeque<usize>,
    /// Streams that the server allows at a time, once its settings are known.
    pub allowed: Option<usize>,
    /// The payload of a frame that it takes at most.
    payload_bytes: usize,
    /// What it takes at first on a stream, and then all in all.
    stream_window: u32,
    window: SendWindow,
    received: ReceiveWindow,
    /// The server's table got smaller, which the next header block has to show is known
    /// (RFC 7541 section 4.2).
    table_shrank: bool,
    /// Replies among what is to be sent.
    replies: usize,
    pub end: Option<ConnectionEnd>,
    /// What came, where it is to be kept.
    pub kept: Option<Kept>,
}

/// What came of a response, as people want to see it.
#[derive(Debug, Default)]
pub struct Kept {
    /// Of the final head, a field a line.
    pub fields: Vec<u8>,
    /// The same of trailers.
    pub trailers: Vec<u8>,
    /// The body's beginning.
    pub body: Vec<u8>,
    pub body_bytes: u64,
    /// More of a body isn't kept.
    most_bytes: usize,
}

impl Kept {
    pub fn up_to(most_bytes: usize) -> Kept {
        Kept { most_bytes, ..Kept::default() }
    }

    /// Takes the lines of a list of fields that has this status; 0: trailers have none.
    pub fn take_fields(&mut self, status: u16, lines: &[u8]) {
        match status {
            0 => self.trailers.extend_from_slice(lines),
            100..200 => {}
            _ => self.fields.extend_from_slice(lines),
        }
    }

    pub fn take(&mut self, body: &[u8]) {
        let room = self.most_bytes - self.body.len();
        self.body.extend_from_slice(&body[..body.len().min(room)]);
        self.body_bytes += body.len() as u64;
    }
}

impl Dialog {
    /// Begins with a client's preface.
    pub fn begin() -> Dialog {
        let mut outgoing = frame::PREFACE.to_vec();
        let settings = [(frame::ENABLE_PUSH, 0), (frame::INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES)];
        frame::write_settings(&mut outgoing, &settings);
        let more = CONNECTION_WINDOW_BYTES - FIRST_BYTES;
        frame::write_number(&mut outgoing, frame::WINDOW_UPDATE, 0, more);
        Dialog {
            outgoing,
            ids: Ids::new(),
            streams: Vec::new(),
            in_flight: 0,
            changed: VecDeque::new(),
            heard: VecDeque::new(),
            sending: VecDeque::new(),
            allowed: None,
            payload_bytes: frame::PAYLOAD_BYTES,
            stream_window: FIRST_BYTES,
            window: SendWindow::new(FIRST_BYTES),
            received: ReceiveWindow::new(CONNECTION_WINDOW_BYTES),
            table_shrank: false,
            replies: 0,
            end: None,
            kept: None,
        }
    }

    /// Puts a request on a stream of a number of ours, as much of it as may be sent by now.
    pub fn send(
        &mut self,
        number: usize,
        flight: Flight,
        message: &Message,
        is_head: bool,
        reading: Reading,
    ) {
        let id = self.ids.open(number);
        let ends = message.body.is_empty();
        match std::mem::take(&mut self.table_shrank) {
            false => self.put_block(id, &message.block, ends),
            true => {
                let block = [&[hpack::NO_TABLE], &message.block[..]].concat();
                self.put_block(id, &block, ends);
            }
        }
        let mut window = SendWindow::new(self.stream_window);
        let sent = self.put_body(id, &mut window, &message.body);
        let received = ReceiveWindow::new(STREAM_WINDOW_BYTES);
        let mut stream = Stream::new(id, flight, is_head, reading, window, received);
        if sent < message.body.len() {
            stream.rest = Some(Rest { body: message.body.clone(), sent });
            self.sending.push_back(number);
        }
        if self.streams.len() <= number {
            self.streams.resize_with(number + 1, || None);
        }
        self.streams[number] = Some(stream);
        self.in_flight += 1;
        if self.ids.are_used_up() {
            self.finish(ConnectionEnd::Retired);
        }
    }

    fn put_block(&mut self, id: u32, block: &[u8], ends: bool) {
        frame::write_block(&mut self.outgoing, id, block, ends, self.payload_bytes);
    }

    /// Puts as much of a body as both windows allow; how much that is.
    fn put_body(&mut self, id: u32, window: &mut SendWindow, body: &[u8]) -> usize {
        let room = MOST_WAITING_BYTES.saturating_sub(self.outgoing.len());
        let count = body.len().min(window.room()).min(self.window.room()).min(room);
        let mut begin = 0;
        while begin < count {
            let end = count.min(begin + self.payload_bytes);
            let flags = if end == body.len() { frame::END_STREAM } else { 0 };
            frame::write(&mut self.outgoing, frame::DATA, flags, id, &body[begin..end]);
            begin = end;
        }
        window.take(count);
        self.window.take(count);
        count
    }

    /// Puts more of the bodies of requests, as far as windows allow.
    pub fn put_bodies(&mut self) {
        for _ in 0..self.sending.len() {
            let Some(number) = self.sending.pop_front() else { return };
            let Some(stream) = &mut self.streams[number] else { continue };
            let (id, mut window) = (stream.id, stream.window);
            let Some(Rest { body, sent }) = stream.rest.take() else { continue };
            let sent = sent + self.put_body(id, &mut window, &body[sent..]);
            let Some(stream) = &mut self.streams[number] else { continue };
            stream.window = window;
            if sent < body.len() {
                stream.rest = Some(Rest { body, sent });
                self.sending.push_back(number);
            }
        }
    }

    /// Something can be sent once there is room for it.
    pub fn has_more(&self) -> bool {
        let has_room = |number: &usize| {
            let stream = self.streams[*number].as_ref();
            stream.is_some_and(|stream| stream.window.room() > 0)
        };
        !self.outgoing.is_empty() || self.window.room() > 0 && self.sending.iter().any(has_room)
    }

    /// So much of what was to be sent is.
    pub fn sent(&mut self, bytes: usize) {
        if bytes < self.outgoing.len() {
            self.outgoing.drain(..bytes);
        } else {
            self.outgoing.clear();
            self.replies = 0;
        }
    }

    /// Hands over the events that came since the last time.
    pub fn take_events(&mut self, mut take: impl FnMut(&Flight, &mut Option<Box<EventStream>>)) {
        while let Some(number) = self.heard.pop_front() {
            if let Some(stream) = &mut self.streams[number] {
                take(&stream.flight, &mut stream.reading.events);
            }
        }
    }

    /// The next request whose fate is known.
    pub fn next_ended(&mut self, now_ns: u64) -> Option<(Flight, Outcome)> {
        while let Some(number) = self.changed.pop_front() {
            let Some(stream) = &mut self.streams[number] else { continue };
            // Of what one read brought the kernel reports one time.
            let seen_ns = now_ns.max(stream.flight.sent_ns);
            stream.see(seen_ns);
            if stream.is_over() {
                return self.take(number).map(|stream| stream.into_outcome(seen_ns));
            }
        }
        None
    }

    /// Gives up requests whose answers are lacking; their streams are cancelled.
    pub fn take_where(&mut self, which: impl Fn(&Stream) -> bool) -> Vec<Stream> {
        let mut taken = Vec::new();
        for number in 0..self.streams.len() {
            let is_taken = |stream: &&Stream| !stream.is_over() && which(stream);
            let Some(stream) = self.streams[number].as_ref().filter(is_taken) else { continue };
            let id = stream.id;
            self.put_reset(id, code::CANCEL);
            self.close(number);
            taken.extend(self.take(number));
        }
        taken
    }

    pub fn streams(&self) -> impl Iterator<Item = &Stream> {
        self.streams.iter().flatten()
    }

    /// More of an answer, or of a request, is to come.
    pub fn is_unfinished(&self) -> bool {
        !self.sending.is_empty() || self.streams().any(Stream::is_reading)
    }

    /// Takes no more requests; those in flight are still answered.
    pub fn finish(&mut self, end: ConnectionEnd) {
        if self.end.is_none() {
            self.end = Some(end);
            self.say_farewell();
        }
    }

    /// The connection is of no use any more: nothing in flight gets an answer.
    pub fn lose(&mut self, lost: Lost) {
        for number in 0..self.streams.len() {
            if let Some(stream) = self.streams[number].as_mut().filter(|it| !it.is_over()) {
                stream.fail(lost.explain(stream.is_reading()));
                self.end_stream(number);
            }
        }
        self.finish(ConnectionEnd::Lost(lost));
    }

    /// Where we are done, the server is informed (RFC 9113 section 6.8).
    fn say_farewell(&mut self) {
        if self.in_flight == 0 && matches!(self.end, Some(ConnectionEnd::Retired)) {
            frame::write_go_away(&mut self.outgoing, code::NO_ERROR);
        }
    }

    fn take(&mut self, number: usize) -> Option<Stream> {
        let stream = self.streams[number].take()?;
        self.in_flight -= 1;
        self.say_farewell();
        Some(stream)
    }

    /// What became of a request is known.
    fn end_stream(&mut self, number: usize) {
        self.close(number);
        self.changed.push_back(number);
    }

    /// What else comes on a stream says nothing.
    fn close(&mut self, number: usize) {
        let Some(stream) = &mut self.streams[number] else { return };
        self.ids.close(stream.id);
        if stream.rest.take().is_some() {
            self.sending.retain(|sending| *sending != number);
        }
    }

    fn put_reset(&mut self, id: u32, reason: u32) {
        frame::write_number(&mut self.outgoing, frame::RST_STREAM, id, reason);
    }
}
