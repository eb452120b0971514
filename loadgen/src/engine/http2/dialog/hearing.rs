//! Frames that came, and what they change: streams, windows, settings, and what is to be replied.

use super::Dialog;
use crate::http2::code::{self, Fault};
use crate::http2::fields::Fields;
use crate::http2::reader::Handler;
use crate::http2::trouble::{ConnectionEnd, Explained, Trouble};
use crate::http2::window::MOST_BYTES;
use crate::http2::{frame, hpack};

/// A server that wants more of these without reading them only makes us work.
const MOST_UNREAD_REPLIES: usize = 10_000;

impl Dialog {
    /// The number of the stream that a frame is about, while it is open.
    fn open(&self, id: u32) -> Result<Option<usize>, Fault> {
        match self.ids.is_known(id) {
            true => Ok(self.ids.number(id)),
            false => Err(Fault::protocol("a frame is for a stream that nobody opened")),
        }
    }

    /// The answer on a stream is of no use; `ends`: nor is there more of it.
    fn fail(&mut self, number: usize, fault: Fault, ends: bool) -> Result<(), Fault> {
        let Some(stream) = &mut self.streams[number] else { return Ok(()) };
        stream.fail(Trouble::malformed(fault));
        let (id, is_sent) = (stream.id, stream.rest.is_none());
        self.end_stream(number);
        if ends && is_sent {
            return Ok(());
        }
        self.put_reset(id, fault.code);
        self.count_reply()
    }

    fn fail_with(&mut self, number: usize, why: Explained) {
        if let Some(stream) = &mut self.streams[number] {
            stream.fail(why);
        }
        self.end_stream(number);
    }

    /// The answer on a stream is whole; the rest of the request nobody wants.
    fn finish_stream(&mut self, number: usize) {
        let Some(stream) = &mut self.streams[number] else { return };
        stream.finish();
        let (id, is_sent) = (stream.id, stream.rest.is_none());
        if !is_sent {
            self.put_reset(id, code::CANCEL);
        }
        self.end_stream(number);
    }

    fn count_reply(&mut self) -> Result<(), Fault> {
        self.replies += 1;
        match self.replies > MOST_UNREAD_REPLIES {
            true => Err(Fault::excess("it wants replies and reads none")),
            false => Ok(()),
        }
    }

    fn set(&mut self, name: u16, value: u32) -> Result<(), Fault> {
        match name {
            frame::HEADER_TABLE_SIZE => {
                self.table_shrank |= (value as usize) < hpack::TABLE_BYTES;
            }
            frame::ENABLE_PUSH if value > 1 => {
                return Err(Fault::protocol("a setting has a value that it can't have"));
            }
            frame::MAX_CONCURRENT_STREAMS => self.allowed = Some(value as usize),
            frame::INITIAL_WINDOW_SIZE => {
                if value > MOST_BYTES {
                    return Err(Fault::flow("a flow control window is opened too far"));
                }
                // Section 6.9.2: of streams that are open as well.
                let by = i64::from(value) - i64::from(self.stream_window);
                self.stream_window = value;
                for stream in self.streams.iter_mut().flatten() {
                    stream.window.change(by)?;
                }
            }
            frame::MAX_FRAME_SIZE => {
                let bytes = value as usize;
                if !(frame::PAYLOAD_BYTES..1 << 24).contains(&bytes) {
                    return Err(Fault::protocol("a setting has a value that it can't have"));
                }
                self.payload_bytes = bytes;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Handler for Dialog {
    fn on_fields(&mut self, id: u32, fields: Fields, ends: bool) -> Result<(), Fault> {
        let Some(number) = self.open(id)? else { return Ok(()) };
        let Some(stream) = &mut self.streams[number] else { return Ok(()) };
        if let (Some(kept), Some(lines)) = (&mut self.kept, &fields.kept) {
            kept.take_fields(fields.status, lines);
        }
        if let Err(fault) = stream.take_fields(fields, ends) {
            return self.fail(number, fault, ends);
        }
        match ends {
            true => self.finish_stream(number),
            false => self.changed.push_back(number),
        }
        Ok(())
    }

    fn on_data(&mut self, id: u32, bytes: u32) -> Result<(), Fault> {
        if let Some(more) = self.received.take(bytes)? {
            frame::write_number(&mut self.outgoing, frame::WINDOW_UPDATE, 0, more);
        }
        let Some(number) = self.open(id)? else { return Ok(()) };
        let Some(stream) = &mut self.streams[number] else { return Ok(()) };
        match stream.received.take(bytes) {
            Ok(None) => Ok(()),
            Ok(Some(more)) => {
                frame::write_number(&mut self.outgoing, frame::WINDOW_UPDATE, id, more);
                Ok(())
            }
            Err(fault) => self.fail(number, fault, false),
        }
    }

    fn on_body(&mut self, id: u32, body: &[u8]) -> Result<(), Fault> {
        let Some(number) = self.ids.number(id) else { return Ok(()) };
        let Some(stream) = &mut self.streams[number] else { return Ok(()) };
        if let Some(kept) = &mut self.kept {
            kept.take(body);
        }
        match stream.take_body(body) {
            Ok(()) => {
                if stream.has_fresh_events() {
                    self.heard.push_back(number);
                }
                Ok(())
            }
            Err(fault) => self.fail(number, fault, false),
        }
    }

    fn on_end(&mut self, id: u32) {
        if let Some(number) = self.ids.number(id) {
            self.finish_stream(number);
        }
    }

    fn on_reset(&mut self, id: u32, reason: u32) -> Result<(), Fault> {
        let Some(number) = self.open(id)? else { return Ok(()) };
        let Some(stream) = &mut self.streams[number] else { return Ok(()) };
        if reason == code::NO_ERROR && stream.is_complete() {
            // The answer is complete, and the rest of the request not wanted (section 8.1).
            stream.finish();
            self.end_stream(number);
        } else {
            self.fail_with(number, Trouble::reset(reason));
        }
        Ok(())
    }

    fn on_settings(&mut self, settings: impl Iterator<Item = (u16, u32)>) -> Result<(), Fault> {
        // Without a limit there may be any number.
        self.allowed.get_or_insert(usize::MAX);
        for (name, value) in settings {
            self.set(name, value)?;
        }
        frame::write(&mut self.outgoing, frame::SETTINGS, frame::ACK, 0, &[]);
        self.count_reply()
    }

    fn on_ping(&mut self, opaque: &[u8]) -> Result<(), Fault> {
        frame::write(&mut self.outgoing, frame::PING, frame::ACK, 0, opaque);
        self.count_reply()
    }

    fn on_go_away(&mut self, last: u32, reason: u32) {
        for number in 0..self.streams.len() {
            let stream = self.streams[number].as_ref();
            if stream.is_some_and(|stream| stream.id > last && !stream.is_over()) {
                self.fail_with(number, Trouble::unprocessed(reason));
            }
        }
        self.finish(ConnectionEnd::GoAway);
    }

    fn on_window(&mut self, id: u32, by: u32) -> Result<(), Fault> {
        if id == 0 {
            return self.window.change(i64::from(by));
        }
        let Some(number) = self.open(id)? else { return Ok(()) };
        let Some(stream) = &mut self.streams[number] else { return Ok(()) };
        match stream.window.change(i64::from(by)) {
            Ok(()) => Ok(()),
            Err(fault) => self.fail(number, fault, false),
        }
    }
}
