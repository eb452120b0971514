//! Streamed answers: which of a body's bytes end an event.

mod tokens;

use memchr::memchr2;
use serde::Deserialize;

use crate::grpc::messages::Messages;

/// How events of a streamed answer are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EventFormat {
    /// Server-sent events (WHATWG HTML, section 9.2.6): what has data ends with an empty line. Of
    /// language models, what brings a token: see [`tokens`].
    Sse,
    /// One event a line, as in JSON lines; empty lines are none.
    Lines,
    /// Messages of gRPC, each with its length before it.
    Grpc,
}

/// Counts events of one body, which may come in any pieces.
#[derive(Debug)]
pub struct EventCounter {
    format: EventFormat,
    /// The line so far, as much of it as is looked at.
    line: Vec<u8>,
    /// The event's data so far, where it has any.
    data: Option<Vec<u8>>,
    /// The last byte was a carriage return, which a line feed belongs to.
    after_cr: bool,
    messages: Messages,
}

const DATA: &[u8] = b"data";
/// Chunks of language models are far shorter; what is longer is looked at no further.
const KEPT_BYTES: usize = 16 * 1024;

impl EventCounter {
    pub fn new(format: EventFormat) -> Self {
        EventCounter {
            format,
            line: Vec::new(),
            data: None,
            after_cr: false,
            messages: Messages::default(),
        }
    }

    /// Says how many events end within the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> u32 {
        if self.format == EventFormat::Grpc {
            return self.messages.feed(bytes);
        }
        let (mut ended, mut rest) = (0, bytes);
        while !rest.is_empty() {
            let (text, after) = rest.split_at(memchr2(b'\r', b'\n', rest).unwrap_or(rest.len()));
            self.after_cr &= text.is_empty();
            self.line.extend_from_slice(&text[..text.len().min(KEPT_BYTES - self.line.len())]);
            let Some((end, after)) = after.split_first() else { break };
            let follows_cr = std::mem::replace(&mut self.after_cr, *end == b'\r');
            if *end == b'\r' || !follows_cr {
                ended += u32::from(self.end_line());
            }
            rest = after;
        }
        ended
    }

    /// The body is at its end. A last line needs no line feed; an event of SSE needs its empty line.
    pub fn finish(&mut self) -> u32 {
        u32::from(self.format == EventFormat::Lines && self.end_line())
    }

    /// Whether an event ends with this line.
    fn end_line(&mut self) -> bool {
        let is_event = match self.format {
            EventFormat::Lines => !self.line.trim_ascii().is_empty(),
            EventFormat::Sse if self.line.is_empty() => {
                self.data.take().is_some_and(|data| tokens::is_event(&data))
            }
            EventFormat::Sse => {
                self.take_data();
                false
            }
            EventFormat::Grpc => false,
        };
        self.line.clear();
        is_event
    }

    /// Takes what a line says of the event's data: a line feed is between several.
    fn take_data(&mut self) {
        let value = match self.line.strip_prefix(DATA) {
            Some([]) => &[],
            Some([b':', value @ ..]) => value.strip_prefix(b" ").unwrap_or(value),
            _ => return,
        };
        let data = self.data.get_or_insert_default();
        if data.len() < KEPT_BYTES {
            data.extend_from_slice(value);
            data.push(b'\n');
        }
    }
}

/// The events of one answer while it arrives.
#[derive(Debug)]
pub struct EventStream {
    counter: EventCounter,
    /// Those that ended within what was read last.
    pub fresh: u32,
    /// Of the whole answer so far.
    pub count: u64,
    /// When the first one was there, and the last one; 0 before the first.
    pub first_ns: u64,
    pub last_ns: u64,
}

impl EventStream {
    pub fn new(format: EventFormat) -> Self {
        EventStream {
            counter: EventCounter::new(format),
            fresh: 0,
            count: 0,
            first_ns: 0,
            last_ns: 0,
        }
    }

    pub fn read(&mut self, bytes: &[u8]) {
        self.fresh += self.counter.feed(bytes);
    }

    /// Mean time from an event to the next; None of fewer than two.
    pub fn per_event_ns(&self) -> Option<u64> {
        let gaps = self.count.checked_sub(1).filter(|gaps| *gaps > 0)?;
        Some(self.last_ns.saturating_sub(self.first_ns) / gaps)
    }

    pub fn finish(&mut self) {
        self.fresh += self.counter.finish();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(format: EventFormat, pieces: &[&[u8]]) -> u32 {
        let mut counter = EventCounter::new(format);
        let fed: u32 = pieces.iter().map(|piece| counter.feed(piece)).sum();
        fed + counter.finish()
    }

    #[test]
    fn events_have_data_and_end_with_an_empty_line() {
        for (body, events) in [
            ("data: a\n\ndata: b\n\n", 2),
            ("data: a\r\n\r\ndata: b\r\n\r\n", 2),
            ("data: a\r\rdata\r\r", 2),
            ("event: x\ndata: a\ndata: b\nid: 1\n\n", 1),
            (": comment\n\nevent: x\n\nretry: 5\n\n", 0),
            ("database: x\n\n", 0),
            ("\n\n\ndata: a\n\n\n\n", 1),
            ("data: cut", 0),
            ("data: a\n", 0),
            ("data: {\"choices\":\ndata:[{\"text\":\"a\"}]}\n\ndata:[DONE]\n\n", 1),
            ("data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\ndata: [DONE]\r\n\r\n", 0),
        ] {
            assert_eq!(count(EventFormat::Sse, &[body.as_bytes()]), events, "{body:?}");
        }
        assert_eq!(count(EventFormat::Lines, &[b"{}\n{}\r\n\n \n{}"]), 3);
        assert_eq!(count(EventFormat::Lines, &[b""]), 0);
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            body in "(data: ?[ab]?|event: x|:|\r|\n|\r\n| ){0,40}",
            cut in 0usize..200,
        ) {
            let bytes = body.as_bytes();
            let (left, right) = bytes.split_at(cut.min(bytes.len()));
            for format in [EventFormat::Sse, EventFormat::Lines] {
                let each: Vec<&[u8]> = bytes.chunks(1).collect();
                let whole = count(format, &[bytes]);
                prop_assert_eq!(count(format, &[left, right]), whole);
                prop_assert_eq!(count(format, &each), whole);
            }
        }
    }
}
