//! Streamed answers: which of a body's bytes end an event.

use serde::Deserialize;

/// How events of a streamed answer are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum EventFormat {
    /// Server-sent events (WHATWG HTML, section 9.2.6): what has data ends with an empty line.
    Sse,
    /// One event a line, as in JSON lines; empty lines are none.
    Lines,
}

/// Counts events of one body, which may come in any pieces.
#[derive(Debug)]
pub struct EventCounter {
    format: EventFormat,
    /// The beginning of the line so far: a field's name and what ends it.
    line: Vec<u8>,
    /// The event has data already.
    has_data: bool,
    /// The last byte was a carriage return, which a line feed belongs to.
    after_cr: bool,
}

const DATA: &[u8] = b"data";
/// As much of a line as tells whether it is data.
const KEPT_BYTES: usize = DATA.len() + 1;

impl EventCounter {
    pub fn new(format: EventFormat) -> Self {
        EventCounter { format, line: Vec::new(), has_data: false, after_cr: false }
    }

    /// Says how many events end within the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) -> u32 {
        let mut ended = 0;
        for &byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => ended += u32::from(self.end_line()),
                _ if self.line.len() < KEPT_BYTES => self.line.push(byte),
                _ => {}
            }
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
            EventFormat::Sse if self.line.is_empty() => std::mem::take(&mut self.has_data),
            EventFormat::Sse => {
                let value = self.line.strip_prefix(DATA);
                self.has_data |=
                    value.is_some_and(|rest| rest.is_empty() || rest.starts_with(b":"));
                false
            }
        };
        self.line.clear();
        is_event
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
    /// When the last one was there; 0 before the first.
    pub last_ns: u64,
}

impl EventStream {
    pub fn new(format: EventFormat) -> Self {
        EventStream { counter: EventCounter::new(format), fresh: 0, count: 0, last_ns: 0 }
    }

    pub fn read(&mut self, bytes: &[u8]) {
        self.fresh += self.counter.feed(bytes);
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
